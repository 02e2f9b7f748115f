WITH started AS (
SELECT 1
),
step0_grouped AS (
    SELECT
        *,
        CAST(0 AS UBIGINT) + (("row" >> 20) << 40) AS "group"
    FROM started
),
step0_ranked AS MATERIALIZED (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY "group"
            ORDER BY hash(xor("row", hash('a|rank|7')))
        ) - 1 AS rank,
        count(*) OVER (PARTITION BY "group") AS size
    FROM step0_grouped
),
step0_placed AS (
    SELECT
        *,
        CAST(((rank << 32) + CAST(hash(xor("group", hash('a|jitter|7'))) >> 32 AS BIGINT)) // size AS UINTEGER)
            AS place
    FROM step0_ranked
),
step0 AS (
    SELECT
        w0 | (CAST(d.value AS UBIGINT) << 2) AS w0,
        "row"
    FROM step0_placed AS r
    INNER JOIN stretches AS d
        ON d.key = (("group" & 1099511627775) << 2) | (r.place >> 30)
        AND d.low <= r.place
        AND d.high >= r.place
)
SELECT
    CAST("row" AS BIGINT) AS "row",
    w0 AS a0,
    0 AS a1
FROM step0
