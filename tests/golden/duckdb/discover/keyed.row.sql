WITH named AS (
    SELECT
        "lat" AS c0,
        "lon" AS c1
    FROM src
),
told AS (
    SELECT
        (CAST(([0, 1, 4, 5, 16, 17, 20, 21])[((CASE WHEN c0 >= CAST('40.0' AS DOUBLE) AND c0 <= CAST('41.0' AS DOUBLE) THEN LEAST(CAST(floor((c0 - CAST('40.0' AS DOUBLE)) * CAST('8.0' AS DOUBLE)) AS BIGINT), 7) END) >> 0 & 7) + 1] AS BIGINT) * 2 + CAST(([0, 1, 4, 5, 16, 17, 20, 21])[((CASE WHEN c1 >= CAST('-75.0' AS DOUBLE) AND c1 <= CAST('-74.0' AS DOUBLE) THEN LEAST(CAST(floor((c1 - CAST('-75.0' AS DOUBLE)) * CAST('8.0' AS DOUBLE)) AS BIGINT), 7) END) >> 0 & 7) + 1] AS BIGINT) * 1) AS k0,
        c0 IS NULL OR isnan(c0) OR c1 IS NULL OR isnan(c1) AS missing
    FROM named
),
placed AS (
    SELECT
        k0,
        CASE
            WHEN missing THEN 2
            WHEN k0 IS NULL THEN 1
            ELSE 0
        END AS state
    FROM told
),
settled AS (
    SELECT
        CASE WHEN state = 0 THEN k0 END AS k0,
        state
    FROM placed
)
SELECT
    k0,
    state,
    CAST(count(*) AS BIGINT) AS n
FROM settled
GROUP BY
    k0,
    state
