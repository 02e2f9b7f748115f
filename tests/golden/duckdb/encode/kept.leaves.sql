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
members AS (
    SELECT
        up.rowid AS parent,
        coded.p0 AS p0,
        up.w AS parent_weight
    FROM coded
    JOIN temp.main.dpsyn_kept_1 AS up
        ON coded.owner = up.key
),
counted AS MATERIALIZED (
    SELECT
        *,
        count(*) OVER (PARTITION BY parent) AS candidates
    FROM members
),
cut AS (
    SELECT
        counted.*,
        up.h AS seed,
        row_number() OVER (PARTITION BY counted.parent, counted.p0) AS copy
    FROM counted
    JOIN temp.main.dpsyn_kept_1 AS up
        ON counted.parent = up.rowid
    WHERE counted.candidates > 2
),
drawn AS (
    SELECT
        * EXCLUDE (seed, copy),
        hash(xor(
            hash(
                p0,
                copy
            ),
            hash(xor(hash(seed), CAST(7 AS UBIGINT)))
        )) AS lot
    FROM cut
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY
                parent
            ORDER BY
                lot, p0
        ) AS place
    FROM drawn
),
bounded AS (
    SELECT *
    FROM counted
    WHERE candidates <= 2
    UNION ALL BY NAME
    SELECT * EXCLUDE (lot, place)
    FROM ranked
    WHERE place <= 2
)
SELECT
    parent,
    p0,
    CAST(LEAST(candidates, 2) AS INTEGER) AS n,
    parent_weight // n AS w
FROM bounded
