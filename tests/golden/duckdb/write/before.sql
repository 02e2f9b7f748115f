SELECT
    l."row",
    s.a0,
    s.a1,
    s.t
FROM listed AS l
INNER JOIN staged AS s
    ON s."row" = l.donor
ORDER BY l."row"
