SELECT
    sofar + "row" % 17 - 1 AS "row",
    "row" // 17 AS parent,
    "row" % 17 - 1 AS rank,
    a0,
    a1_0,
    t
FROM (
SELECT 1 AS a
)
