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
                WHEN (bits & 1073741823) < (entry & 2147483647)
                    THEN (entry >> 31) & 7
                ELSE entry >> 34
            END AS value
        FROM (
            SELECT
                *,
                entries0[slot] AS entry
            FROM step0_bits
        )
    ) AS d
)
SELECT
    CAST("row" AS BIGINT) AS "row",
    w0 AS a0,
    0 AS a1
FROM step0
