(
    SELECT
        own."id" AS "id",
        own."its_unit" AS "its_unit",
        encode(CAST(own."id" AS VARCHAR)) AS "its_unit1"
    FROM "p" AS own
    WHERE encode(CAST(own."id" AS VARCHAR)) IS NOT NULL
)
