WITH named AS (
    SELECT
        "a" AS c
    FROM src
),
told AS (
    SELECT
        COALESCE(lc.code + 1, 0) AS thing
    FROM named
    ASOF LEFT JOIN (SELECT unnest(CAST('[1, 2]' AS INTEGER[])), unnest(range(2))) AS lc(start, code) ON c >= lc.start
)
SELECT
    thing AS thing,
    CAST(count(*) AS BIGINT) AS n
FROM told
WHERE told.thing IS NOT NULL
GROUP BY
    told.thing
