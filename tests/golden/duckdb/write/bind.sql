SELECT
    "d" + 1 AS bound
FROM (
    SELECT
        CAST(NULL AS DATE) AS "d"
)
WHERE FALSE
