DELETE FROM staged
WHERE "row" IN (
WITH decoded AS (
    SELECT
        "row" AS "dpsyn_row",
        (CAST([0, 1] AS INTEGER[]))[CAST(a0 AS BIGINT) + 1] AS "a"
    FROM staged
    WHERE "row" >= 7 + 343597383680
),
computed AS (
    SELECT
        *,
        TRY_CAST(TRY("a" + 1) AS INTEGER) AS "b"
    FROM decoded
)
SELECT
    "dpsyn_row"
FROM computed
WHERE COALESCE(TRY("a" > 0), FALSE)
    OR COALESCE(TRY("b" IS NULL), FALSE)
)
