WITH RECURSIVE
lists0 AS MATERIALIZED (
    SELECT *
    FROM lists
),
moments AS MATERIALIZED (
SELECT 1 AS a
),
walk AS (
    SELECT
        CAST(0 AS UBIGINT) AS w0,
        CAST(0 AS UBIGINT) AS w1,
        CAST(0 AS BIGINT) AS tick,
        number - 1 AS "row"
    FROM moments
    WHERE
        number % 65 = 1
        AND EXISTS (FROM lists0)
    UNION ALL
    SELECT
        w0,
        w1,
        tick + 1 AS tick,
        "row"
    FROM (
SELECT 1 AS a
    )
)
SELECT
    "row",
    w0 AS a0,
    0 AS a1
FROM walk
WHERE "row" % 65 > 0
