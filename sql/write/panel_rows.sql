-- The numbers of staged rows, ascending.
-- in:  staged (table with the column row)
-- out: row
SELECT "row"
FROM {{ staged }}
ORDER BY "row"
