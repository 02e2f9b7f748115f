WITH kept AS (
SELECT
    own.rowid AS r,
    own.parent AS parent,
    own.p0 AS p0,
    own.p1 AS p1,
    CAST(CASE WHEN COALESCE(number2.n, 0) IS NULL THEN 0 ELSE CAST(CAST(CASE WHEN COALESCE(number2.n, 0) < 0 THEN 0 WHEN COALESCE(number2.n, 0) > 2 THEN 2 ELSE COALESCE(number2.n, 0) END AS BIGINT) - CAST(0 AS BIGINT) AS BIGINT) END AS UTINYINT) AS p2,
    classes2.z0 AS p3,
    up.p0 AS p4,
    own.o AS o,
    own.h AS h,
    own.key AS key,
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
JOIN temp.main.dpsyn_kept_3 AS classes2
    ON classes2.r = own.rowid
JOIN (
SELECT
    own.rowid AS r,
    own.rowid AS parent,
    own.p0 AS p0,
    own.n AS n,
    own.w AS w
FROM temp.main.dpsyn_kept_0 AS own
) AS up
    ON up.r = own.parent
),
family AS (
    SELECT
        lag(o) OVER family_order AS bo,
        row_number() OVER family_order AS place,
        lag(p0) OVER family_order AS b0,
        parent AS u,
        *
    FROM kept
    WINDOW
        family_rows AS (PARTITION BY parent),
        family_order AS (
            PARTITION BY
                parent
            ORDER BY
                o,
                p0,
                p1,
                h,
                key
        )
)
SELECT
    CAST((((((CAST(p0 AS INTEGER) * 3 + p2) * 3 + p4) * 4 + CASE WHEN n = 1 THEN 0 WHEN place = 1 THEN 1 WHEN place = n THEN 3 ELSE 2 END) * 4 + COALESCE(b0, 3)) * 2 + p3) AS USMALLINT) AS p0,
    CAST(u AS BIGINT) AS u,
    n,
    w
FROM family
ORDER BY
    u
