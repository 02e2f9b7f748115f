-- DuckDB's own syntax tree of a query, as JSON; nothing is bound or run.
-- in:  query (text literal)
-- out: tree
SELECT
    json_serialize_sql({{ query }}) AS tree
