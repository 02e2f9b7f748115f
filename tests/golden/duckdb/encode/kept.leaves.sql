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
members AS MATERIALIZED (
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
        CAST(LEAST(count(*), 2) AS INTEGER) AS n
    FROM members
    GROUP BY
        parent
),
cut AS (
    SELECT
        members.*,
        up.h AS seed,
        row_number() OVER (PARTITION BY members.parent, members.p0) AS copy,
        families.n AS n
    FROM members
    JOIN families
        ON members.parent = families.parent
        AND families.met > families.n
    JOIN temp.main.dpsyn_kept_1 AS up
        ON members.parent = up.rowid
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
    SELECT
        members.*,
        families.n AS n
    FROM members
    JOIN families
        ON members.parent = families.parent
        AND families.met = families.n
    UNION ALL BY NAME
    SELECT * EXCLUDE (lot, place)
    FROM ranked
    WHERE place <= 2
)
SELECT
    parent,
    p0,
    n,
    parent_weight // n AS w
FROM bounded
