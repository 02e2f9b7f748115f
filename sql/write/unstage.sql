-- Remove the listed rows.
-- in:  staged (table with the columns row, a0, a1, ...), listed (table with the column row)
-- out: nothing
DELETE FROM {{ staged }}
WHERE "row" IN (
    SELECT
        "row"
    FROM {{ listed }}
)
