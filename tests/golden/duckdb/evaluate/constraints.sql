SELECT
    constraint_type AS kind,
    array_to_string(constraint_column_names, chr(0)) AS columns,
    coalesce(referenced_table, '') AS target,
    coalesce(array_to_string(referenced_column_names, chr(0)), '') AS named
FROM duckdb_constraints()
WHERE database_name = 'm'
    AND schema_name = 's'
    AND table_name = 'it''s {{ x }}'
    AND constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'FOREIGN KEY')
ORDER BY constraint_index
