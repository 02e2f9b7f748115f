SELECT count(DISTINCT encode(CAST(who AS VARCHAR))) AS persons
FROM "d"."t"
