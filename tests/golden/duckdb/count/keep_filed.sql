CREATE TABLE dpsyn_filed.main.t0 AS
SELECT 1 AS a
