SELECT
    CAST("a" AS VARCHAR) AS c0,
    CAST("it's" AS VARCHAR) AS c1
FROM "d"."t"
