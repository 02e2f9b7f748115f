-- Keep the first rows of the staged ones.
-- in:  staged, rows
-- out: nothing
DELETE FROM {{ staged }}
WHERE "row" NOT IN (
    SELECT
        "row"
    FROM {{ staged }}
    ORDER BY "row"
    LIMIT {{ rows }}
)
