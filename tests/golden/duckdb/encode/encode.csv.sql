WITH named AS (
    SELECT
        TRY_CAST(trim("a") AS INTEGER) AS c0,
        "b""" AS c1
    FROM src
),
coded AS (
    SELECT
        CASE WHEN c0 IS NULL THEN 0 ELSE CAST(CAST(LEAST(GREATEST(c0, 0), 2) AS BIGINT) - CAST(0 AS BIGINT) AS BIGINT) END AS k0,
        CASE WHEN c1 IS NULL THEN 2 ELSE COALESCE((MAP {'x': 0, 'it''s': 1})[c1], 2) END AS k1
    FROM named
)
SELECT
    CAST(k0 AS UTINYINT) AS p0,
    CAST(k1 AS UTINYINT) AS p1
FROM coded
