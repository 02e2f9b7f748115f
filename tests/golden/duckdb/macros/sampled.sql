WITH ordered AS (
    SELECT *
    FROM (
SELECT 1 AS a
    )
    ORDER BY "row"
),
decoded AS (
    SELECT
        a0 AS "a"
    FROM ordered
),
computed AS (
    SELECT
        "a",
        1 AS "b"
    FROM decoded
)
SELECT *
FROM computed
WHERE TRUE
    AND TRY("a" > 0) IS NOT TRUE
