SELECT
    s.a0,
    s.a1
FROM staged AS s
WHERE s.a0 < 5
