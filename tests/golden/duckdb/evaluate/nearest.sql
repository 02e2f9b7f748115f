SELECT
    count(*) AS points
    , avg(least((v0 - 1) * (v0 - 1) + (v1 - 2) * (v1 - 2))) AS m0
FROM (
    SELECT
        CAST("a" AS DOUBLE) AS v0,
        CAST("b" AS DOUBLE) AS v1
    FROM src
) AS points
WHERE TRUE
    AND v0 IS NOT NULL
    AND v1 IS NOT NULL
