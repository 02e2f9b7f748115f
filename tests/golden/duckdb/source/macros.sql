SELECT DISTINCT function_name AS name
FROM system.main.duckdb_functions()
WHERE function_type IN ('macro', 'table_macro')
    AND NOT internal
