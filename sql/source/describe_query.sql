-- Column names and types of a query as it names them itself (behind FROM, DuckDB would rename clashing
-- ones): it is bound, no row is read.
-- in:  query
-- out: column_name, column_type, null, key, default, extra
DESCRIBE
{{ query }}
