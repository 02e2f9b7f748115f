SELECT DISTINCT
    up.its_unit,
    encode(CAST(strlen(CAST(own."id" AS VARCHAR)) AS VARCHAR) || ':' || CAST(own."id" AS VARCHAR) || CAST(strlen(CAST(own."n" AS VARCHAR)) AS VARCHAR) || ':' || CAST(own."n" AS VARCHAR)) AS its_key
FROM "q" AS own
JOIN (
SELECT DISTINCT
    encode(CAST(own."id" AS VARCHAR)) AS its_unit,
    encode(CAST(own."id" AS VARCHAR)) AS its_key
FROM "p" AS own
WHERE encode(CAST(own."id" AS VARCHAR)) IS NOT NULL
) AS up
    ON encode(CAST(own."of" AS VARCHAR)) = up.its_key
WHERE encode(CAST(strlen(CAST(own."id" AS VARCHAR)) AS VARCHAR) || ':' || CAST(own."id" AS VARCHAR) || CAST(strlen(CAST(own."n" AS VARCHAR)) AS VARCHAR) || ':' || CAST(own."n" AS VARCHAR)) IS NOT NULL
