-- Rows of a new table.
-- in:  table (qualified name), query (the decoded rows)
-- out: the rows
INSERT INTO {{ table }}
{{ query }}
