WITH started AS (
SELECT 1
),
step0_bits AS (
    SELECT
        *,
        CAST(hash(xor("row", hash('a|value|7'))) >> 32 AS UINTEGER) AS bits,
        CAST((CAST(0 AS UBIGINT) << 2) | (bits >> 30) AS BIGINT) + 1 AS slot
    FROM started
),
step0 AS (
    SELECT
        w0 | (CAST(d.value AS UBIGINT) << 2) AS w0,
        "row"
    FROM (
        SELECT
            *,
            CASE
                WHEN (bits & 1073741823) < thresholds0[slot] THEN own0[slot]
                ELSE aliases0[slot]
            END AS value
        FROM step0_bits
    ) AS d
)
SELECT
    CAST("row" AS BIGINT) AS "row",
    w0 AS a0,
    0 AS a1
FROM (
    SELECT *
    FROM step0
    ORDER BY "row"
)
