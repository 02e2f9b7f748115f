WITH kept AS (
WITH named AS (
    SELECT
        encode(CAST("Who ""is""" AS VARCHAR)) AS unit,
        TRY_CAST(trim("a") AS INTEGER) AS c0,
        "b""" AS c1
    FROM src
),
coded AS (
    SELECT
        unit,
        CASE WHEN c0 IS NULL THEN 0 ELSE CAST(CAST(CASE WHEN c0 < 0 THEN 0 WHEN c0 > 2 THEN 2 ELSE c0 END AS BIGINT) - CAST(0 AS BIGINT) AS BIGINT) END AS k0,
        CASE WHEN c1 IS NULL THEN 2 ELSE COALESCE((MAP {'x': 0, 'it''s': 1})[c1], 2) END AS k1,
        CASE WHEN c0 IS NULL THEN 4611686018427387904 ELSE CAST(LEAST(GREATEST(c0, 0), 2) AS BIGINT) END AS o
    FROM named
),
packed AS (
    SELECT
        unit,
        CAST(k0 AS UTINYINT) AS p0,
        CAST(k1 AS UTINYINT) AS p1,
        o
    FROM coded
    WHERE unit IS NOT NULL
),
numbered AS (
    SELECT
        unit,
        p0,
        p1,
        o,
        row_number() OVER (
            PARTITION BY
                unit,
                p0,
                p1,
                o
        ) AS copy
    FROM packed
),
drawn AS (
    SELECT
        unit,
        p0,
        p1,
        o,
        hash(xor(
            hash(
                p0,
                p1,
                o,
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
        o,
        row_number() OVER (
            PARTITION BY
                unit
            ORDER BY
                lot,
                p0,
                p1,
                o
        ) AS place
    FROM drawn
)
SELECT
    unit,
    p0,
    p1,
    o
FROM ranked
WHERE place <= 3
),
family AS (
    SELECT
        *,
        CASE WHEN min(p1) OVER unit_rows < max(p1) OVER unit_rows THEN 1 ELSE 0 END AS d1,
        lag(o) OVER unit_order AS bo,
        row_number() OVER unit_order AS place,
        count(*) OVER unit_rows AS n
    FROM kept
    WINDOW
        unit_rows AS (PARTITION BY unit),
        unit_order AS (
            PARTITION BY
                unit
            ORDER BY
                o,
                p0,
                p1
        )
)
SELECT
    CAST(p0 AS UTINYINT) AS p0,
    CAST(((CAST(d1 AS INTEGER) * 4 + CASE WHEN bo IS NULL OR o = 4611686018427387904 THEN 3 ELSE CASE WHEN (o - bo) IS NULL THEN 3 ELSE CASE WHEN (o - bo) < 1 THEN 0 ELSE CASE WHEN (o - bo) < 2 THEN 1 ELSE 2 END END END END) * 4 + CASE WHEN n = 1 THEN 0 WHEN place = 1 THEN 1 WHEN place = n THEN 3 ELSE 2 END) AS UTINYINT) AS p1,
    CAST(1048576 // n AS BIGINT) AS w
FROM family
