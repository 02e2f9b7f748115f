WITH kept AS (
WITH named AS (
    SELECT
        encode(CAST("Who ""is""" AS VARCHAR)) AS unit,
        "a" AS c0,
        "b""" AS c1
    FROM src
),
coded AS (
    SELECT
        unit,
        CASE WHEN c0 IS NULL THEN 0 ELSE CAST(CAST(CASE WHEN c0 < 0 THEN 0 WHEN c0 > 2 THEN 2 ELSE c0 END AS BIGINT) - CAST(0 AS BIGINT) AS BIGINT) END AS k0,
        CASE WHEN c1 IS NULL THEN 2 ELSE COALESCE((MAP {'x': 0, 'it''s': 1})[c1], 2) END AS k1
    FROM named
),
packed AS (
    SELECT
        unit,
        CAST(k0 AS UTINYINT) AS p0,
        CAST(k1 AS UTINYINT) AS p1
    FROM coded
    WHERE unit IS NOT NULL
),
numbered AS (
    SELECT
        unit,
        p0,
        p1,
        row_number() OVER (
            PARTITION BY
                unit,
                p0,
                p1
        ) AS copy
    FROM packed
),
drawn AS (
    SELECT
        unit,
        p0,
        p1,
        hash(xor(
            hash(
                p0,
                p1,
                copy
            ),
            hash(xor(hash(unit), CAST(18446744073709551615 AS UBIGINT)))
        )) AS lot
    FROM numbered
),
ranked AS (
    SELECT
        unit,
        p0,
        p1,
        row_number() OVER (
            PARTITION BY
                unit
            ORDER BY
                lot,
                p0,
                p1
        ) AS place
    FROM drawn
)
SELECT
    unit,
    p0,
    p1
FROM ranked
WHERE place <= 3
),
counted AS (
    SELECT
        *,
        count(*) OVER (PARTITION BY unit, p0) AS f0
    FROM kept
),
family AS (
    SELECT
        *,
        max(f0 * 3 + 2 - CAST(p0 AS BIGINT)) OVER unit_rows AS m0,
        CASE WHEN min(p0) OVER unit_rows < max(p0) OVER unit_rows THEN 1 ELSE 0 END AS d0,
        dense_rank() OVER (ORDER BY unit) AS u,
        count(*) OVER unit_rows AS n
    FROM counted
    WINDOW
        unit_rows AS (PARTITION BY unit)
)
SELECT
    CAST((CAST((2 - m0 % 3) AS INTEGER) * 3 + p1) AS UTINYINT) AS p0,
    CAST((CAST(CASE WHEN n IS NULL THEN 0 ELSE CAST(CAST(CASE WHEN n < 1 THEN 1 WHEN n > 3 THEN 3 ELSE n END AS BIGINT) - CAST(1 AS BIGINT) AS BIGINT) END AS INTEGER) * 2 + d0) AS UTINYINT) AS p1,
    CAST(u AS BIGINT) AS u,
    CAST(n AS BIGINT) AS n,
    CAST(1048576 // n AS BIGINT) AS w
FROM family
ORDER BY
    u
