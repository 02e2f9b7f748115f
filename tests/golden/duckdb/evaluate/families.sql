CREATE TEMP TABLE families AS
SELECT
    *,
    count(*) OVER (PARTITION BY part, unit) AS n
FROM src
WHERE side < 2
    AND unit IS NOT NULL
