SELECT
    p0,
    p2,
    CAST(sum(w) AS BIGINT) AS n
FROM "temp"."main"."codes"
GROUP BY
    p0,
    p2
