WITH named AS (
    SELECT
        "x""" AS c0_0,
        "n" AS c0_1,
        "a" AS c1
    FROM src
),
keyed AS (
    SELECT
        *,
        (CAST(([0, 1, 4, 5])[((CASE WHEN c0_0 >= CAST('0.0' AS DOUBLE) AND c0_0 <= CAST('1.0' AS DOUBLE) THEN LEAST(CAST(floor((c0_0 - CAST('0.0' AS DOUBLE)) * CAST('4.0' AS DOUBLE)) AS BIGINT), 3) END) >> 0 & 3) + 1] AS BIGINT) * 2 + CAST(([0, 1, 4, 5])[((CASE WHEN c0_1 >= 1 AND c0_1 <= 4 THEN (CAST(c0_1 AS BIGINT) - (1)) END) >> 0 & 3) + 1] AS BIGINT) * 1) AS c0
    FROM named
),
coded AS (
    SELECT
        CAST(CASE WHEN c0 IS NULL THEN 3 ELSE CASE WHEN c0 < 4 THEN 0 ELSE CASE WHEN c0 < 8 THEN 1 ELSE 2 END END END AS UTINYINT) AS k0,
        CAST(CASE WHEN c1 IS NULL THEN 0 ELSE CAST(CAST(CASE WHEN c1 < 0 THEN 0 WHEN c1 > 2 THEN 2 ELSE c1 END AS BIGINT) - CAST(0 AS BIGINT) AS BIGINT) END AS UTINYINT) AS k1
    FROM keyed
)
SELECT
    CASE
        WHEN k0 IS NOT NULL THEN 0
        WHEN k1 IS NOT NULL THEN 1
    END AS attribute,
    CASE
        WHEN k0 IS NOT NULL THEN CAST(k0 AS BIGINT)
        WHEN k1 IS NOT NULL THEN CAST(k1 AS BIGINT)
    END AS code,
    CAST(count(*) AS BIGINT) AS n
FROM coded
GROUP BY GROUPING SETS (
    (k0),
    (k1)
)
