SELECT
    w0 AS m0,
    w1 AS m1,
    count(*) OVER (PARTITION BY "row" // 65) AS n,
    count(*) OVER (PARTITION BY "row" // 65, own ORDER BY "row" DESC) AS in_bin,
    "row" // 65 * 65
        + row_number() OVER (PARTITION BY "row" // 65 ORDER BY own, "row") AS number
FROM (
    SELECT
        *,
        w0 & 3 AS own
    FROM (
SELECT 1 AS a
    )
)
