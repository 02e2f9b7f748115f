CREATE TEMP VIEW coded AS
FROM dpsyn_filed.main.t0
