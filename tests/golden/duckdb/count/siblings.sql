WITH coded AS (
    SELECT
        u,
        CAST(w // (n - 1) AS BIGINT) AS v,
        CAST((p0 // 3) AS BIGINT) AS a,
        CAST(([0, 1, 0])[CAST(p1 AS BIGINT) + 1] AS BIGINT) AS b
    FROM coded
    WHERE n > 1
    AND w > 0
),
families AS (
    SELECT
        count(*) FILTER (WHERE a = 0) AS a0,
        count(*) FILTER (WHERE a = 1) AS a1,
        count(*) FILTER (WHERE a = 2) AS a2,
        count(*) FILTER (WHERE b = 0) AS b0,
        count(*) FILTER (WHERE b = 1) AS b1,
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
            CAST(1 AS BIGINT),
            CAST(1 AS BIGINT),
            CAST(2 AS BIGINT),
            CAST(2 AS BIGINT)
        ]) AS a,
        unnest([
            CAST(0 AS BIGINT),
            CAST(1 AS BIGINT),
            CAST(0 AS BIGINT),
            CAST(1 AS BIGINT),
            CAST(0 AS BIGINT),
            CAST(1 AS BIGINT)
        ]) AS b,
        unnest([
            COALESCE(sum(v * a0 * b0), 0),
            COALESCE(sum(v * a0 * b1), 0),
            COALESCE(sum(v * a1 * b0), 0),
            COALESCE(sum(v * a1 * b1), 0),
            COALESCE(sum(v * a2 * b0), 0),
            COALESCE(sum(v * a2 * b1), 0)
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
