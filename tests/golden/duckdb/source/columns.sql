SELECT
    column_name AS name,
    data_type AS sql_type,
    NOT is_nullable AS not_null
FROM duckdb_columns()
WHERE database_name = 'm'
    AND schema_name = 's'
    AND table_name = 'it''s {{ x }}'
ORDER BY column_index
