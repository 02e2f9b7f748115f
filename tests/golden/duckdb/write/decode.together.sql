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
    CASE WHEN a0 < 3 THEN CAST(t AS INTEGER) END AS "a",
    CAST(((CAST([0, 10] AS BIGINT[]))[CAST(a1 AS BIGINT) + 1] + CAST(((hash(xor(CAST(unit AS UBIGINT), hash('w|position|9'))) >> 24) * (CAST([CAST('10' AS UBIGINT), CAST('20' AS UBIGINT)] AS UBIGINT[]))[CAST(a1 AS BIGINT) + 1]) >> 40 AS BIGINT)) AS INTEGER) AS "w"
FROM ordered
