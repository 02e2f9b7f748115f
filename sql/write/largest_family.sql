-- How many rows the largest family has.
-- in:  staged (table with the column rank)
-- out: most
SELECT
    COALESCE(max(rank) + 1, 0) AS most
FROM {{ staged }}
