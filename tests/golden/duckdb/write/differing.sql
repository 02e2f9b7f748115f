WITH written AS MATERIALIZED (
SELECT 1 AS a
)
SELECT count(*) AS rows
FROM (
    (FROM "d"."t" EXCEPT ALL FROM written)
    UNION ALL
    (FROM written EXCEPT ALL FROM "d"."t")
)
