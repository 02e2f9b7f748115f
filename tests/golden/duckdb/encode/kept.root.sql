WITH coded AS (
WITH named AS (
    SELECT
        encode(CAST("id" AS VARCHAR)) AS key,
        "a" AS c0
    FROM "p"
),
coded AS (
    SELECT
        key,
        CASE WHEN c0 IS NULL THEN 0 ELSE CAST(CAST(CASE WHEN c0 < 0 THEN 0 WHEN c0 > 2 THEN 2 ELSE c0 END AS BIGINT) - CAST(0 AS BIGINT) AS BIGINT) END AS k0
    FROM named
)
SELECT
    key,
    CAST(k0 AS UTINYINT) AS p0
FROM coded
),
met AS MATERIALIZED (
    SELECT
        coded.key AS unit,
        coded.key AS key,
        hash(xor(
            hash(coded.key),
            hash(xor(hash(coded.key), CAST(7 AS UBIGINT)))
        )) AS h,
        coded.p0 AS p0,
        1048576 AS parent_weight
    FROM coded
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
                met.p0
        ) AS copy
    FROM met
    JOIN repeated
        ON met.unit = repeated.unit
        AND met.key = repeated.key
),
members AS MATERIALIZED (
    SELECT met.*
    FROM met
    ANTI JOIN repeated
        ON met.unit = repeated.unit
        AND met.key = repeated.key
    UNION ALL BY NAME
    SELECT * EXCLUDE (copy)
    FROM numbered
    WHERE copy = 1
)
SELECT
    key,
    h,
    p0,
    1 AS n,
    parent_weight AS w
FROM members
