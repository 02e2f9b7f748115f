(
WITH valued AS (
    SELECT
        CAST(0 AS UTINYINT) AS side,
        "a" AS v0,
        CAST("b" AS VARCHAR) AS v1
    FROM src
    UNION ALL
    SELECT
        CAST(1 AS UTINYINT) AS side,
        "a" AS v0,
        CAST("b" AS VARCHAR) AS v1
    FROM made
    UNION ALL
    SELECT
        CAST(2 AS UTINYINT) AS side,
        "a" AS v0,
        CAST("b" AS VARCHAR) AS v1
    FROM held
)
SELECT
    side,
    v0 / 2 AS z0,
    CAST(CASE WHEN v0 IS NULL THEN 0 ELSE 1 END AS UTINYINT) AS k0,
    CAST(coalesce(l1.code, 1) AS UTINYINT) AS k1
FROM valued
LEFT JOIN labels AS l1 ON v1 = l1.value
)
