WITH finite AS (
    SELECT *
    FROM temp.main.distribution
    WHERE isfinite(value)
),
means AS (
    SELECT
        CAST(sum(real) AS BIGINT) AS n_real,
        CAST(sum(synthetic) AS BIGINT) AS n_synthetic,
        count(*) FILTER (WHERE real > 0) AS distinct_values,
        sum(value * real) / sum(real) AS mean_real,
        sum(value * synthetic) / sum(synthetic) AS mean_synthetic,
        min(value) FILTER (WHERE real > 0) AS least_real,
        max(value) FILTER (WHERE real > 0) AS most_real,
        min(value) FILTER (WHERE synthetic > 0) AS least_synthetic,
        max(value) FILTER (WHERE synthetic > 0) AS most_synthetic
    FROM finite
),
shared AS (
    SELECT
        *,
        CAST(real_to AS DOUBLE) / n_real AS real_share,
        CAST(synthetic_to AS DOUBLE) / n_synthetic AS synthetic_share
    FROM finite
    CROSS JOIN means
)
SELECT
    any_value(n_real) AS n_real,
    any_value(n_synthetic) AS n_synthetic,
    any_value(distinct_values) AS distinct_values,
    any_value(mean_real) AS mean_real,
    any_value(mean_synthetic) AS mean_synthetic,
    any_value(least_real) AS least_real,
    any_value(most_real) AS most_real,
    any_value(least_synthetic) AS least_synthetic,
    any_value(most_synthetic) AS most_synthetic,
    sqrt(sum((value - mean_real) ** 2 * real) / any_value(n_real)) AS deviation_real,
    sqrt(sum((value - mean_synthetic) ** 2 * synthetic) / any_value(n_synthetic)) AS deviation_synthetic,
    max(abs(real_share - synthetic_share)) AS kolmogorov_smirnov,
    sum(abs(real_share - synthetic_share) * (next - value)) AS wasserstein,
    CAST(sum(synthetic) FILTER (WHERE value BETWEEN least_real AND most_real) AS BIGINT) AS inside
FROM shared
