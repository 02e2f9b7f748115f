SELECT
    encode(CAST(thing AS VARCHAR)) AS thing,
    n
FROM temp.main.k
WHERE place >= 0
AND place < 5
ORDER BY
    place
