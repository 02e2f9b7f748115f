WITH ordered AS (
    SELECT *
    FROM staged
    ORDER BY "row"
)
SELECT
    CAST(CAST('1' AS HUGEINT) + CAST(parent AS HUGEINT) AS BIGINT) AS "u",
    CASE WHEN a0 < 3 THEN CAST(t AS INTEGER) END AS "a",
    CAST(((CAST([0, 10] AS BIGINT[]))[CAST(a1 AS BIGINT) + 1] + CAST(((hash(xor(CAST(parent AS UBIGINT), hash('w|position|9'))) >> 24) * (CAST([CAST('10' AS UBIGINT), CAST('20' AS UBIGINT)] AS UBIGINT[]))[CAST(a1 AS BIGINT) + 1]) >> 40 AS BIGINT)) AS INTEGER) AS "w"
FROM ordered
