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
ranked AS (
    SELECT
        key,
        p0,
        row_number() OVER (
            PARTITION BY
                key
            ORDER BY
                p0
        ) AS copy
    FROM coded
    WHERE key IS NOT NULL
)
SELECT
    key,
    p0,
    hash(xor(
            hash(key),
            hash(xor(hash(key), CAST(7 AS UBIGINT)))
        )) AS h,
    1 AS n,
    1048576 AS w
FROM ranked
WHERE copy = 1
