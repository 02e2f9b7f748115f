SELECT DISTINCT
    table_name AS name,
    referenced_table AS referenced
FROM duckdb_constraints()
WHERE database_name = 'm'
    AND schema_name = 's'
    AND constraint_type = 'FOREIGN KEY'
    AND table_name <> referenced_table
ORDER BY ALL
