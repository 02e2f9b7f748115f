-- How the synthetic table covers the categories of one column.
-- in:  table (a distribution)
-- out: one row: missing_real, missing_synthetic, unseen (synthetic rows with a value that the real table does
--      not have), distinct_values, covered (of them), distance (total variation of the values that are not
--      missing; NULL if a table has none)
WITH given AS (
    SELECT
        CAST(sum(real) AS DOUBLE) AS n_real,
        CAST(sum(synthetic) AS DOUBLE) AS n_synthetic
    FROM {{ table }}
    WHERE value IS NOT NULL
)
SELECT
    CAST(coalesce(sum(real) FILTER (WHERE value IS NULL), 0) AS BIGINT) AS missing_real,
    CAST(coalesce(sum(synthetic) FILTER (WHERE value IS NULL), 0) AS BIGINT) AS missing_synthetic,
    CAST(coalesce(sum(synthetic) FILTER (WHERE real = 0 AND value IS NOT NULL), 0) AS BIGINT) AS unseen,
    count(*) FILTER (WHERE value IS NOT NULL AND real > 0) AS distinct_values,
    count(*) FILTER (WHERE value IS NOT NULL AND real > 0 AND synthetic > 0) AS covered,
    sum(abs(real / n_real - synthetic / n_synthetic)) FILTER (WHERE value IS NOT NULL) / 2 AS distance
FROM {{ table }}
CROSS JOIN given
