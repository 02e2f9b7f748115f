SELECT
    s.a0,
    s.a1
FROM staged AS s
INNER JOIN listed AS l
    ON l."row" = s."row"
ORDER BY s."row"
