-- The keys of a table's rows, for the rows that name them.
-- in:  table (qualified name), query (dpsyn_row, then the columns of the key)
-- out: a temporary table
CREATE TEMP TABLE {{ table }} AS
{{ query }}
