WITH numbered AS (
    SELECT
        *,
        row_number() OVER (ORDER BY hash(xor(CAST("row" AS UBIGINT), hash('id|order|9'))), "row") - 1 AS n0
    FROM staged
),
ordered AS (
    SELECT *
    FROM numbered
    ORDER BY "row"
),
decoded AS (
    SELECT
        ('key-' || lpad(CAST(n0 + 1 AS VARCHAR), 6, '0')) AS "id",
        (CAST([0, 1] AS INTEGER[]))[CAST(a0 AS BIGINT) + 1] AS "a",
        CAST('2020-01-01' AS DATE) AS "c"
    FROM ordered
)
SELECT
    "id",
    TRY_CAST(TRY("a" + 1) AS INTEGER) AS "b",
    "a",
    "c"
FROM decoded
