SELECT
    CAST(coalesce(count_if(v0 > 1), 0) AS BIGINT) AS c0,
    CAST(coalesce(count_if(v1 BETWEEN 2 AND 3), 0) AS BIGINT) AS c1
FROM src
