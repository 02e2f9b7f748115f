SELECT
    count(DISTINCT node) AS nodes
FROM "db"."dpsyn"."shares"
WHERE release = 3
