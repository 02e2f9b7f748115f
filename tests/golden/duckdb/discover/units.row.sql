WITH named AS (
    SELECT
        "a" AS c
    FROM src
),
told AS (
    SELECT
        encode(c) AS thing
    FROM named
)
SELECT
    thing AS thing,
    CAST(count(*) AS BIGINT) AS n
FROM told
WHERE told.thing IS NOT NULL
GROUP BY
    told.thing
