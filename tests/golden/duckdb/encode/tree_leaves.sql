WITH coded AS (
WITH named AS (
    SELECT
        encode(CAST(strlen(CAST("of" AS VARCHAR)) AS VARCHAR) || ':' || CAST("of" AS VARCHAR) || CAST(strlen(CAST("at" AS VARCHAR)) AS VARCHAR) || ':' || CAST("at" AS VARCHAR)) AS owner,
        "b""" AS c0
    FROM "r"
),
coded AS (
    SELECT
        owner,
        CASE WHEN c0 IS NULL THEN 2 ELSE COALESCE((MAP {'x': 0, 'it''s': 1})[c0], 2) END AS k0
    FROM named
)
SELECT
    owner,
    CAST(k0 AS UTINYINT) AS p0
FROM coded
),
met AS MATERIALIZED (
    SELECT
        up.rowid AS parent,
        coded.p0 AS p0,
        up.w AS parent_weight
    FROM coded
    JOIN temp.main.dpsyn_kept_1 AS up
        ON coded.owner = up.key
),
families AS MATERIALIZED (
    SELECT
        parent,
        count(*) AS met,
        CAST(LEAST(count(*), 2) AS INTEGER) AS kept
    FROM met
    GROUP BY
        parent
),
numbered AS (
    SELECT
        met.*,
        families.kept AS kept,
        up.h AS parent_lot,
        row_number() OVER (
            PARTITION BY
                met.parent,
                met.p0
        ) AS copy
    FROM met
    JOIN families
        ON met.parent = families.parent
        AND families.met > families.kept
    JOIN temp.main.dpsyn_kept_1 AS up
        ON met.parent = up.rowid
),
drawn AS (
    SELECT
        *,
        hash(xor(
            hash(
                p0,
                copy
            ),
            hash(xor(hash(parent_lot), CAST(7 AS UBIGINT)))
        )) AS lot
    FROM numbered
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY
                parent
            ORDER BY
                lot,
                p0
        ) AS place
    FROM drawn
),
bounded AS (
    SELECT
        met.*,
        families.kept AS kept
    FROM met
    JOIN families
        ON met.parent = families.parent
        AND families.met = families.kept
    UNION ALL BY NAME
    SELECT
        * EXCLUDE (parent_lot, copy, lot, place)
    FROM ranked
    WHERE place <= 2
)
SELECT
    parent,
    p0,
    kept AS n,
    parent_weight // kept AS w
FROM bounded
