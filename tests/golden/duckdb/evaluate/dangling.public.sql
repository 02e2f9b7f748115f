SELECT
    side,
    count(*) AS rows,
    count(*) FILTER (WHERE own.r0 IS NULL OR own.r2 IS NULL) AS missing,
    count(*) FILTER (
        WHERE own.r0 IS NOT NULL
            AND own.r2 IS NOT NULL
            AND NOT EXISTS (
                SELECT 1
                FROM other AS named
                WHERE named.r1 = own.r0 AND named.r0 = own.r2
            )
    ) AS broken
FROM coded AS own
GROUP BY side
