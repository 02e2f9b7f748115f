WITH RECURSIVE
lists0 AS MATERIALIZED (
    SELECT *
    FROM lists
),
walk AS (
    SELECT
        w0,
        w1,
        CAST(w0 & 63 AS BIGINT) AS n,
        CAST(-1 AS BIGINT) AS code,
        CAST(-1 AS BIGINT) AS highest,
        CAST(0 AS BIGINT) AS tick,
        CAST("row" * 65 AS BIGINT) AS "row"
    FROM (
SELECT 1 AS a
    )
    UNION ALL
    SELECT
        w0,
        w1,
        n,
        own AS code,
        own AS highest,
        tick,
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
