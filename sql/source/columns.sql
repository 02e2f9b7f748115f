-- Columns of one table as the catalog states them.
-- in:  catalog, schema, name (text literals)
-- out: name, sql_type, not_null, in column order
SELECT
    column_name AS name,
    data_type AS sql_type,
    NOT is_nullable AS not_null
FROM duckdb_columns()
WHERE database_name = {{ catalog }}
    AND schema_name = {{ schema }}
    AND table_name = {{ name }}
ORDER BY column_index
