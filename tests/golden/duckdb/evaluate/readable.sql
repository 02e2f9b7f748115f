SELECT
    count(*) AS rows
    , count("a") AS g0
    , count("a") FILTER (WHERE TRY_CAST("a" AS DATE) IS NULL) AS u0
FROM src
