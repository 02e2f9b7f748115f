INSERT INTO staged
SELECT
    s.* REPLACE (l."row" AS "row")
FROM listed AS l
INNER JOIN staged AS s
    ON s."row" = l.donor
