WITH given AS (
    SELECT
        CAST(sum(real) AS DOUBLE) AS n_real,
        CAST(sum(synthetic) AS DOUBLE) AS n_synthetic
    FROM temp.main.distribution
    WHERE value IS NOT NULL
)
SELECT
    CAST(coalesce(sum(real) FILTER (WHERE value IS NULL), 0) AS BIGINT) AS missing_real,
    CAST(coalesce(sum(synthetic) FILTER (WHERE value IS NULL), 0) AS BIGINT) AS missing_synthetic,
    CAST(coalesce(sum(synthetic) FILTER (WHERE real = 0 AND value IS NOT NULL), 0) AS BIGINT) AS unseen,
    count(*) FILTER (WHERE value IS NOT NULL AND real > 0) AS distinct_values,
    count(*) FILTER (WHERE value IS NOT NULL AND real > 0 AND synthetic > 0) AS covered,
    sum(abs(real / n_real - synthetic / n_synthetic)) FILTER (WHERE value IS NOT NULL) / 2 AS distance
FROM temp.main.distribution
CROSS JOIN given
