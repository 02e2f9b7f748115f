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
met AS MATERIALIZED (
    SELECT
        up.rowid AS parent,
        up.rowid AS unit,
        coded.key AS key,
        hash(xor(
            hash(coded.key),
            hash(xor(hash(up.h), CAST(7 AS UBIGINT)))
        )) AS h,
        coded.p0 AS p0,
        coded.p1 AS p1,
        coded.o AS o,
        up.w AS parent_weight
    FROM coded
    JOIN temp.main.dpsyn_kept_0 AS up
        ON coded.owner = up.key
    WHERE coded.key IS NOT NULL
),
repeated AS MATERIALIZED (
    SELECT
        unit,
        key
    FROM met
    GROUP BY
        unit,
        key
    HAVING count(*) > 1
),
numbered AS (
    SELECT
        met.*,
        row_number() OVER (
            PARTITION BY
                met.unit,
                met.key
            ORDER BY
                up.key,
                met.p0,
                met.p1,
                met.o
        ) AS copy
    FROM met
    JOIN repeated
        ON met.unit = repeated.unit
        AND met.key = repeated.key
    JOIN temp.main.dpsyn_kept_0 AS up
        ON met.parent = up.rowid
),
members AS (
    SELECT met.*
    FROM met
    ANTI JOIN repeated
        ON met.unit = repeated.unit
        AND met.key = repeated.key
    UNION ALL BY NAME
    SELECT * EXCLUDE (copy)
    FROM numbered
    WHERE copy = 1
),
counted AS MATERIALIZED (
    SELECT
        *,
        count(*) OVER (PARTITION BY parent) AS candidates
    FROM members
),
cut AS (
    SELECT
        counted.*
    FROM counted
    WHERE counted.candidates > 3
),
drawn AS (
    SELECT
        *,
        h AS lot
    FROM cut
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY
                parent
            ORDER BY
                lot, key
        ) AS place
    FROM drawn
),
bounded AS (
    SELECT *
    FROM counted
    WHERE candidates <= 3
    UNION ALL BY NAME
    SELECT * EXCLUDE (lot, place)
    FROM ranked
    WHERE place <= 3
)
SELECT
    parent,
    key,
    h,
    p0,
    p1,
    o,
    CAST(LEAST(candidates, 3) AS INTEGER) AS n,
    parent_weight // n AS w
FROM bounded
