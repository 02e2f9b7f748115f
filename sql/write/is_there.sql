-- Nothing of a table or view: fails where there is none.
-- in:  table, qualified
-- out: no row
SELECT *
FROM {{ table }}
LIMIT 0
