CREATE TEMP TABLE temp.main.distribution AS
WITH valued AS (
    SELECT
        0 AS side,
        a + 1 AS value
    FROM src
    UNION ALL
    SELECT
        1 AS side,
        a + 1 AS value
    FROM made
    UNION ALL
    SELECT
        2 AS side,
        a + 1 AS value
    FROM held
),
counted AS (
    SELECT
        value,
        count(*) FILTER (WHERE side = 0) AS real,
        count(*) FILTER (WHERE side = 1) AS synthetic,
        count(*) FILTER (WHERE side = 2) AS holdout
    FROM valued
    GROUP BY value
)
SELECT
    *,
    CAST(sum(real) OVER upward AS BIGINT) AS real_to,
    CAST(sum(synthetic) OVER upward AS BIGINT) AS synthetic_to,
    lead(value) OVER (ORDER BY value) AS next
FROM counted
WHERE isfinite(value)
WINDOW upward AS (ORDER BY value ROWS UNBOUNDED PRECEDING)
UNION ALL
SELECT
    *,
    NULL,
    NULL,
    NULL
FROM counted
WHERE value IS NULL
    OR NOT isfinite(value)
