WITH ordered AS (
    SELECT *
    FROM staged
)
SELECT
    CAST(((CAST([0, 1] AS BIGINT[]))[CAST(a0 AS BIGINT) + 1] + CAST(((hash(xor(CAST("row" AS UBIGINT), hash('a|position|9'))) >> 24) * (CAST([CAST('1' AS UBIGINT), CAST('4' AS UBIGINT)] AS UBIGINT[]))[CAST(a0 AS BIGINT) + 1]) >> 40 AS BIGINT)) AS INTEGER) AS "a",
    (CAST(['it''s', '__other__'] AS VARCHAR[]))[CAST(a1 AS BIGINT) + 1] AS "b""",
    (CAST([DATE '2020-01-01', DATE '2020-01-02'] AS DATE[]))[CAST(a2 AS BIGINT) + 1] AS "c"
FROM ordered
