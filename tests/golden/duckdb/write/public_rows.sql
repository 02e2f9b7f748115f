SELECT
    CAST("a" AS DATE) AS "a"
FROM goods
ORDER BY dpsyn_row
