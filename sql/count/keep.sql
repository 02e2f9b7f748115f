-- The rows of a query, once, for the statements that follow (private side).
-- in:  table, query
-- out: temporary table with the columns of the query
CREATE TEMP TABLE {{ table }} AS
{{ query }}
