SELECT
    p0,
    p2,
    CAST(count(*) AS BIGINT) AS n
FROM "temp"."main"."codes"
GROUP BY
    p0,
    p2
