-- A table for the rows of a query that come piece by piece (private side, in a task).
-- in:  table, query
-- out: empty temporary table with the columns of the query
CREATE TEMP TABLE {{ table }} AS
SELECT *
FROM (
{{ query }}
) AS rows_to_come
LIMIT 0
