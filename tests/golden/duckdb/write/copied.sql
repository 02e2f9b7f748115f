INSERT INTO staged
SELECT
    s.* REPLACE (l."row" AS "row", s.rank + l."row" - l.donor AS rank)
FROM listed AS l
INNER JOIN staged AS s
    ON s."row" = l.donor
