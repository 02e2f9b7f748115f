-- Keep the first rows of the staged ones, from row number first on.
-- in:  staged, first (row number; earlier rows stay), rows
-- out: nothing
DELETE FROM {{ staged }}
WHERE "row" >= {{ first }}
AND "row" NOT IN (
    SELECT
        "row"
    FROM {{ staged }}
    WHERE "row" >= {{ first }}
    ORDER BY "row"
    LIMIT {{ rows }}
)
