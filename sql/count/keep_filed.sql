-- The rows of a query in a file of ours, where a temporary table does not fit (private side).
-- in:  table (of our file), query
-- out: a table with the columns of the query
CREATE TABLE {{ table }} AS
{{ query }}
