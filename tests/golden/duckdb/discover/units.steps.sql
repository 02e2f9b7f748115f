WITH named AS (
    SELECT
        "a" AS c
    FROM src
),
told AS (
    SELECT
        CASE WHEN c >= CAST('0001-01-01 00:00:00' AS TIMESTAMP) AND c <= CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP) THEN CAST(CASE WHEN day(c) = 1 AND (epoch_us(c)) % 86400000000 = 0 THEN 2 WHEN (epoch_us(c)) % 1000000 = 0 THEN 1 ELSE 0 END AS BIGINT) END AS thing
    FROM named
)
SELECT
    thing AS thing,
    CAST(count(*) AS BIGINT) AS n
FROM told
WHERE told.thing IS NOT NULL
GROUP BY
    told.thing
