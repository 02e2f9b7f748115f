WITH named AS (
    SELECT
        encode(CAST("Who ""is""" AS VARCHAR)) AS unit,
        "lat" AS c0,
        "lon" AS c1,
        "b""" AS c2
    FROM src
),
told AS (
    SELECT
        unit,
        (CAST(([0, 1, 4, 5, 16, 17, 20, 21])[((CASE WHEN c0 >= CAST('40.0' AS DOUBLE) AND c0 <= CAST('41.0' AS DOUBLE) THEN LEAST(CAST(floor((c0 - CAST('40.0' AS DOUBLE)) * CAST('8.0' AS DOUBLE)) AS BIGINT), 7) END) >> 0 & 7) + 1] AS BIGINT) * 2 + CAST(([0, 1, 4, 5, 16, 17, 20, 21])[((CASE WHEN c1 >= CAST('-75.0' AS DOUBLE) AND c1 <= CAST('-74.0' AS DOUBLE) THEN LEAST(CAST(floor((c1 - CAST('-75.0' AS DOUBLE)) * CAST('8.0' AS DOUBLE)) AS BIGINT), 7) END) >> 0 & 7) + 1] AS BIGINT) * 1) AS k0,
        encode(CASE WHEN regexp_full_match(substr(c2, 1, 2), '[ab]*') THEN CASE WHEN length(c2) < 2 THEN c2 || chr(3) ELSE substr(c2, 1, 2) END END) AS k1,
        c0 IS NULL OR isnan(c0) OR c1 IS NULL OR isnan(c1) AS missing
    FROM named
    WHERE unit IS NOT NULL
),
placed AS (
    SELECT
        unit,
        k0,
        k1,
        CASE
            WHEN missing THEN 2
            WHEN k0 IS NULL THEN 1
            WHEN k1 IS NULL THEN 1
            ELSE 0
        END AS state
    FROM told
),
settled AS (
    SELECT
        unit,
        CASE WHEN state = 0 THEN k0 END AS k0,
        CASE WHEN state = 0 THEN k1 END AS k1,
        state
    FROM placed
),
numbered AS (
    SELECT
        unit,
        k0,
        k1,
        state,
        row_number() OVER (
            PARTITION BY
                unit,
                k0,
                k1,
                state
        ) AS copy
    FROM settled
),
drawn AS (
    SELECT
        unit,
        k0,
        k1,
        state,
        hash(xor(
            hash(
                k0,
                k1,
                state,
                copy
            ),
            hash(xor(hash(unit), CAST(18446744073709551615 AS UBIGINT)))
        )) AS lot
    FROM numbered
),
ranked AS (
    SELECT
        k0,
        k1,
        state,
        row_number() OVER (
            PARTITION BY
                unit
            ORDER BY
                lot,
                k0,
                k1,
                state
        ) AS place
    FROM drawn
)
SELECT
    k0,
    k1,
    state,
    CAST(count(*) AS BIGINT) AS n
FROM ranked
WHERE place <= 3
GROUP BY
    k0,
    k1,
    state
