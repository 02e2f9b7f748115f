-- The rows of a query, added to those that came before (private side, in a task).
-- in:  table, query
-- out: nothing
INSERT INTO {{ table }}
{{ query }}
