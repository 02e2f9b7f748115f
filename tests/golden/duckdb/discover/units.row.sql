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
    thing,
    CAST(count(*) AS BIGINT) AS units
FROM told
WHERE thing IS NOT NULL
GROUP BY
    thing
