-- The statement that makes a table, as the catalog would print it.
-- in:  catalog, schema, name (text literals)
-- out: sql
SELECT
    sql
FROM duckdb_tables()
WHERE database_name = {{ catalog }}
    AND schema_name = {{ schema }}
    AND table_name = {{ name }}
