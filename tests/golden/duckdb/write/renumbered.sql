UPDATE staged AS s
SET "row" = l.donor
FROM listed AS l
WHERE s."row" = l."row"
