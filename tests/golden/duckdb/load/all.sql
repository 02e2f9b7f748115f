SELECT *
FROM "d"."main"."it's"
