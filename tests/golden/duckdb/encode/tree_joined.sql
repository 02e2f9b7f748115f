(
    SELECT
        own."id" AS "id",
        own."its_unit" AS "its_unit",
        up.its_unit AS "its_unit1"
    FROM "r" AS own
    JOIN (
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
    ) AS up
        ON encode(CAST(strlen(CAST(own."of" AS VARCHAR)) AS VARCHAR) || ':' || CAST(own."of" AS VARCHAR) || CAST(strlen(CAST(own."at" AS VARCHAR)) AS VARCHAR) || ':' || CAST(own."at" AS VARCHAR)) = up.its_key
)
