SELECT
    own.rowid AS r,
    own.parent AS parent,
    own.p0 AS p0,
    up.p0 AS p1,
    up.p1 AS p2,
    up.p2 AS p3,
    own.n AS n,
    own.w AS w
FROM temp.main.dpsyn_kept_2 AS own
JOIN (
SELECT
    own.rowid AS r,
    own.parent AS parent,
    own.p0 AS p0,
    own.p1 AS p1,
    CAST(CASE WHEN COALESCE(number2.n, 0) IS NULL THEN 0 ELSE CAST(CAST(CASE WHEN COALESCE(number2.n, 0) < 0 THEN 0 WHEN COALESCE(number2.n, 0) > 2 THEN 2 ELSE COALESCE(number2.n, 0) END AS BIGINT) - CAST(0 AS BIGINT) AS BIGINT) END AS UTINYINT) AS p2,
    own.n AS n,
    own.w AS w
FROM temp.main.dpsyn_kept_1 AS own
LEFT JOIN (
    SELECT
        parent,
        count(*) AS n
    FROM temp.main.dpsyn_kept_2
    GROUP BY
        parent
) AS number2
    ON number2.parent = own.rowid
) AS up
    ON up.r = own.parent
