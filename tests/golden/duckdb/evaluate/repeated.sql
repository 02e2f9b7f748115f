WITH counted AS (
    SELECT
        side,
        r0,
        r1,
        count(*) AS c
    FROM coded
    GROUP BY ALL
)
SELECT
    side,
    CAST(sum(c) AS BIGINT) AS rows,
    CAST(coalesce(sum(c) FILTER (WHERE r0 IS NULL OR r1 IS NULL), 0) AS BIGINT) AS missing,
    CAST(coalesce(sum(c - 1) FILTER (WHERE r0 IS NOT NULL AND r1 IS NOT NULL), 0) AS BIGINT) AS broken
FROM counted
GROUP BY side
