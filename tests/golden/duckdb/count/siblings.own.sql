WITH coded AS (
    SELECT
        u,
        CAST(w // (n - 1) AS BIGINT) AS v,
        CAST((p0 % 3) AS BIGINT) AS a,
        CAST((p0 % 3) AS BIGINT) AS b
    FROM coded
    WHERE n > 1
    AND w > 0
),
families AS (
    SELECT
        count(*) FILTER (WHERE a = 0) AS a0,
        count(*) FILTER (WHERE a = 1) AS a1,
        count(*) FILTER (WHERE a = 2) AS a2,
        v
    FROM coded
    GROUP BY
        u,
        v
),
pairs AS (
    SELECT
        unnest([
            CAST(0 AS BIGINT),
            CAST(0 AS BIGINT),
            CAST(0 AS BIGINT),
            CAST(1 AS BIGINT),
            CAST(1 AS BIGINT),
            CAST(1 AS BIGINT),
            CAST(2 AS BIGINT),
            CAST(2 AS BIGINT),
            CAST(2 AS BIGINT)
        ]) AS a,
        unnest([
            CAST(0 AS BIGINT),
            CAST(1 AS BIGINT),
            CAST(2 AS BIGINT),
            CAST(0 AS BIGINT),
            CAST(1 AS BIGINT),
            CAST(2 AS BIGINT),
            CAST(0 AS BIGINT),
            CAST(1 AS BIGINT),
            CAST(2 AS BIGINT)
        ]) AS b,
        unnest([
            COALESCE(sum(v * a0 * a0), 0),
            COALESCE(sum(v * a0 * a1), 0),
            COALESCE(sum(v * a0 * a2), 0),
            COALESCE(sum(v * a0 * a1), 0),
            COALESCE(sum(v * a1 * a1), 0),
            COALESCE(sum(v * a1 * a2), 0),
            COALESCE(sum(v * a0 * a2), 0),
            COALESCE(sum(v * a1 * a2), 0),
            COALESCE(sum(v * a2 * a2), 0)
        ]) AS n
    FROM families
    UNION ALL
    SELECT
        a,
        b,
        -sum(v) AS n
    FROM coded
    GROUP BY
        a,
        b
)
SELECT
    a,
    b,
    CAST(sum(n) AS BIGINT) AS n
FROM pairs
GROUP BY
    a,
    b
