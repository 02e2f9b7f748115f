(
SELECT
    v0 AS "a",
    v1 AS "b"
FROM "temp"."main"."x"
)
