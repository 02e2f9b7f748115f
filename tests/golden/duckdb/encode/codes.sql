WITH kept AS (
SELECT
    own.rowid AS r,
    own.parent AS parent,
    own.p0 AS p0,
    up.p0 AS p1,
    own.n AS n,
    own.w AS w
FROM temp.main.dpsyn_kept_2 AS own
JOIN (
SELECT
    own.rowid AS r,
    own.parent AS parent,
    own.p0 AS p0,
    own.n AS n,
    own.w AS w
FROM temp.main.dpsyn_kept_1 AS own
) AS up
    ON up.r = own.parent
),
family AS (
    SELECT
        *
    FROM kept
)
SELECT
    CAST((CAST(p0 AS INTEGER) * 3 + p1) AS UTINYINT) AS p0,
    w
FROM family
