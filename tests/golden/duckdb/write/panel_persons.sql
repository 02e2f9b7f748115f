SELECT
    known.number,
    found.p0,
    found.p1
FROM (
SELECT unit, p0, p1 FROM coded_rows
) AS found
JOIN (
    SELECT
        encode(CAST(number + 1 AS VARCHAR)) AS unit,
        number
    FROM range(7) AS numbers(number)
) AS known
    ON found.parent = known.unit
ORDER BY known.number
