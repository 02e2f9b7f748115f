WITH decoded AS (
    SELECT
        "row" AS "dpsyn_row",
        CASE WHEN a0 < 2 THEN CAST(t AS INTEGER) END AS "a"
    FROM staged
    WHERE drawn >= 7
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
