WITH coded AS (
WITH named AS (
    SELECT
        encode(CAST("of" AS VARCHAR)) AS owner,
        encode(CAST(strlen(CAST("id" AS VARCHAR)) AS VARCHAR) || ':' || CAST("id" AS VARCHAR) || CAST(strlen(CAST("n" AS VARCHAR)) AS VARCHAR) || ':' || CAST("n" AS VARCHAR)) AS key,
        "a" AS c0,
        "b""" AS c1
    FROM "q"
),
coded AS (
    SELECT
        owner,
        key,
        CASE WHEN c0 IS NULL THEN 0 ELSE CAST(CAST(CASE WHEN c0 < 0 THEN 0 WHEN c0 > 2 THEN 2 ELSE c0 END AS BIGINT) - CAST(0 AS BIGINT) AS BIGINT) END AS k0,
        CASE WHEN c1 IS NULL THEN 2 ELSE COALESCE((MAP {'x': 0, 'it''s': 1})[c1], 2) END AS k1,
        CASE WHEN c0 IS NULL THEN 4611686018427387904 ELSE CAST(LEAST(GREATEST(c0, 0), 2) AS BIGINT) END AS o
    FROM named
)
SELECT
    owner,
    key,
    CAST(k0 AS UTINYINT) AS p0,
    CAST(k1 AS UTINYINT) AS p1,
    o
FROM coded
),
met AS (
    SELECT
        up.rowid AS unit,
        up.rowid AS parent,
        up.key AS parent_key,
        up.h AS parent_lot,
        up.w AS parent_weight,
        coded.key AS key,
        coded.p0 AS p0,
        coded.p1 AS p1,
        coded.o AS o
    FROM coded
    JOIN temp.main.dpsyn_kept_0 AS up
        ON coded.owner = up.key
    WHERE coded.key IS NOT NULL
),
single AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY
                unit,
                key
            ORDER BY
                parent_key,
                p0,
                p1,
                o
        ) AS copy
    FROM met
),
drawn AS (
    SELECT
        *,
        hash(xor(
            hash(key),
            hash(xor(hash(parent_lot), CAST(7 AS UBIGINT)))
        )) AS h
    FROM single
    WHERE copy = 1
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY
                parent
            ORDER BY
                h,
                key
        ) AS place,
        LEAST(count(*) OVER (PARTITION BY parent), 3) AS kept
    FROM drawn
)
SELECT
    unit,
    parent,
    key,
    p0,
    p1,
    o,
    h,
    CAST(kept AS INTEGER) AS n,
    CAST(parent_weight // kept AS INTEGER) AS w
FROM ranked
WHERE place <= 3
