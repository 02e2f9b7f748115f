SELECT
    "code",
    "label"
FROM "d".dpsyn."codes"
WHERE release = 3
