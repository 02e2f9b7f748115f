-- Rows under a name, computed when they are read (private side, in a task).
-- in:  name, query
-- out: temporary view with the columns of the query
CREATE TEMP VIEW {{ name }} AS
{{ query }}
