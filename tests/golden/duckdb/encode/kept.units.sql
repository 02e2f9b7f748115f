WITH coded AS (
WITH named AS (
    SELECT
        encode(CAST("Who ""is""" AS VARCHAR)) AS owner,
        "a" AS c0,
        "b""" AS c1,
        "c" AS c2,
        "d" AS c3,
        month("when") AS c4
    FROM src
),
coded AS (
    SELECT
        owner,
        CASE WHEN c0 IS NULL THEN 0 ELSE CAST(CAST(CASE WHEN c0 < 0 THEN 0 WHEN c0 > 2 THEN 2 ELSE c0 END AS BIGINT) - CAST(0 AS BIGINT) AS BIGINT) END AS k0,
        CASE WHEN c1 IS NULL THEN 2 ELSE COALESCE((MAP {'x': 0, 'it''s': 1})[c1], 2) END AS k1,
        CASE WHEN c2 IS NULL OR isnan(c2) THEN 2 ELSE CASE WHEN c2 < CAST('0.5' AS DOUBLE) THEN 0 ELSE 1 END END AS k2,
        CASE WHEN c3 IS NULL THEN 4 ELSE CASE WHEN c3 >= 1 AND c3 <= 9 THEN ([0, 1, 4, 4, 2, 4, 4, 4, 3])[CAST(CAST(CASE WHEN c3 < 1 THEN 1 WHEN c3 > 9 THEN 9 ELSE c3 END AS BIGINT) - CAST(1 AS BIGINT) AS BIGINT) + 1] ELSE 4 END END AS k3,
        CASE WHEN c4 IS NULL THEN 0 ELSE CASE WHEN c4 >= 1 AND c4 <= 12 THEN CAST(CAST(CASE WHEN c4 < 1 THEN 1 WHEN c4 > 12 THEN 12 ELSE c4 END AS BIGINT) - CAST(1 AS BIGINT) AS BIGINT) ELSE 0 END END AS k4
    FROM named
)
SELECT
    owner,
    CAST(((((CAST(k0 AS INTEGER) * 3 + k1) * 3 + k2) * 5 + k3) * 12 + k4) AS USMALLINT) AS p0
FROM coded
),
members AS (
    SELECT
        coded.owner AS parent,
        coded.p0 AS p0,
        1048576 AS parent_weight
    FROM coded
    WHERE coded.owner IS NOT NULL
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
        counted.parent AS seed,
        row_number() OVER (PARTITION BY counted.parent, counted.p0) AS copy
    FROM counted
    WHERE counted.candidates > 3
),
drawn AS (
    SELECT
        * EXCLUDE (seed, copy),
        hash(xor(
            hash(
                p0,
                copy
            ),
            hash(xor(hash(seed), CAST(18446744073709551615 AS UBIGINT)))
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
    WHERE candidates <= 3
    UNION ALL BY NAME
    SELECT * EXCLUDE (lot, place)
    FROM ranked
    WHERE place <= 3
)
SELECT
    parent,
    CAST((p0 // 540) AS UTINYINT) AS p0,
    CAST(((p0 // 180) % 3) AS UTINYINT) AS p1,
    CAST(((p0 // 60) % 3) AS UTINYINT) AS p2,
    CAST(((p0 // 12) % 5) AS UTINYINT) AS p3,
    CAST((p0 % 12) AS UTINYINT) AS p4,
    CAST(LEAST(candidates, 3) AS INTEGER) AS n,
    parent_weight // n AS w
FROM bounded
