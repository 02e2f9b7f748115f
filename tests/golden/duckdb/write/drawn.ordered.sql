SELECT
    s.a0,
    s.a1
FROM staged AS s
ORDER BY s."row"
