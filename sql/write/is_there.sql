-- Nothing of a table or view: fails where there is none.
-- in:  table (quoted)
-- out: no row
SELECT *
FROM {{ table }}
LIMIT 0
