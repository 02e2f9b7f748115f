WITH named AS (
    SELECT
        TRY_CAST(trim("x""") AS DOUBLE) AS c0_0,
        TRY_CAST(trim("n") AS INTEGER) AS c0_1,
        TRY_CAST(trim("a") AS INTEGER) AS c1,
        "word" AS c2_0,
        "kind" AS c3_0
    FROM src
),
keyed AS (
    SELECT
        *,
        (CAST(([0, 1, 4, 5])[((CASE WHEN c0_0 >= CAST('0.0' AS DOUBLE) AND c0_0 <= CAST('1.0' AS DOUBLE) THEN LEAST(CAST(floor((c0_0 - CAST('0.0' AS DOUBLE)) * CAST('4.0' AS DOUBLE)) AS BIGINT), 3) END) >> 0 & 3) + 1] AS BIGINT) * 2 + CAST(([0, 1, 4, 5])[((CASE WHEN c0_1 >= 1 AND c0_1 <= 4 THEN (CAST(c0_1 AS BIGINT) - (1)) END) >> 0 & 3) + 1] AS BIGINT) * 1) AS c0,
        encode(CASE WHEN regexp_full_match(substr(c2_0, 1, 1), '[\x{27}a]*') THEN CASE WHEN length(c2_0) < 1 THEN c2_0 || chr(3) ELSE substr(c2_0, 1, 1) END END) AS c2,
        CAST((MAP {'b': 0, 'it''s': 1})[CAST(c3_0 AS VARCHAR)] AS BIGINT) AS c3
    FROM named
),
coded AS (
    SELECT
        CASE WHEN c0 IS NULL THEN 3 ELSE CASE WHEN c0 < 4 THEN 0 ELSE CASE WHEN c0 < 8 THEN 1 ELSE 2 END END END AS k0,
        CASE WHEN c1 IS NULL THEN 0 ELSE CAST(CAST(CASE WHEN c1 < 0 THEN 0 WHEN c1 > 2 THEN 2 ELSE c1 END AS BIGINT) - CAST(0 AS BIGINT) AS BIGINT) END AS k1,
        CASE WHEN (c2_0 IS NULL) THEN 3 WHEN c2 IS NULL THEN 2 ELSE CASE WHEN c2 < encode('''') THEN 0 ELSE 1 END END AS k2,
        CASE WHEN c3 IS NULL THEN 1 ELSE 0 END AS k3
    FROM keyed
)
SELECT
    CAST(k0 AS UTINYINT) AS p0,
    CAST(((CAST(k1 AS INTEGER) * 4 + k2) * 2 + k3) AS UTINYINT) AS p1
FROM coded
