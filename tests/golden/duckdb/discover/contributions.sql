WITH named AS (
    SELECT
        encode(id) AS unit
    FROM src
),
bounded AS (
    SELECT
        LEAST(count(*), 3) - 1 AS thing
    FROM named
    WHERE unit IS NOT NULL
    GROUP BY
        unit
)
SELECT
    CAST(thing AS BIGINT) AS thing,
    CAST(count(*) AS BIGINT) AS n
FROM bounded
GROUP BY
    thing
