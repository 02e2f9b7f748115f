SELECT count(*) AS "rows"
FROM "d"."main"."it's"
