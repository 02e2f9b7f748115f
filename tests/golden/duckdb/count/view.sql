CREATE TEMP VIEW coded AS
SELECT
    *,
    rowid AS rowid
FROM dpsyn_filed.main.t0
