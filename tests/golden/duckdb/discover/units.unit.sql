WITH named AS (
    SELECT
        encode(id) AS unit,
        "a" AS c
    FROM src
),
told AS (
    SELECT
        unit,
        encode(c) AS thing
    FROM named
),
pairs AS (
    SELECT DISTINCT
        unit,
        thing
    FROM told
    WHERE unit IS NOT NULL
    AND thing IS NOT NULL
),
drawn AS (
    SELECT
        unit,
        thing,
        hash(xor(
            hash(thing),
            hash(xor(hash(unit), CAST(7 AS UBIGINT)))
        )) AS lot
    FROM pairs
),
ranked AS (
    SELECT
        thing,
        row_number() OVER (
            PARTITION BY
                unit
            ORDER BY
                lot,
                thing
        ) AS place
    FROM drawn
)
SELECT
    encode(thing) AS thing,
    CAST(count(*) AS BIGINT) AS n
FROM ranked
WHERE place <= 2
GROUP BY
    ranked.thing
