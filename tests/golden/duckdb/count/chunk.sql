SELECT
    p0,
    p1
FROM coded
WHERE rowid >= 0
AND rowid < 7
