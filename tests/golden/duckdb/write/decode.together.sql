WITH numbered AS (
    SELECT
        *,
        "row" AS n0
    FROM staged
),
ordered AS (
    SELECT *
    FROM numbered
    ORDER BY "row"
)
SELECT
    CAST(CAST('1' AS HUGEINT) + CAST((((CASE WHEN n0 < 1 THEN (n0 - 0) // 1 + 0 ELSE (n0 - 1) // 2 + 1 END) * 3) % 4) AS HUGEINT) AS BIGINT) AS "u",
    CASE WHEN a0 < 3 THEN CAST(t AS INTEGER) END AS "a"
FROM ordered
