SELECT
    c0,
    c1
FROM (
    SELECT
        c0,
        c1,
        place,
        hash(xor(place, hash('lot|1'))) AS lot
    FROM (
        SELECT
            "a" AS c0,
            CAST("b" AS VARCHAR) AS c1,
            CAST(row_number() OVER () AS UBIGINT) AS place
        FROM src
    ) AS placed
    WHERE hash(xor(place, hash('part|1'))) % 5 = 0
) AS lotted
WHERE lot <= 18446744073709551615
ORDER BY
    lot,
    place
LIMIT 5
