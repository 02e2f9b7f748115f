SELECT
    constraint_type AS kind,
    constraint_column_names AS columns,
    COALESCE(referenced_table, '') AS referenced,
    referenced_column_names AS referenced_columns
FROM duckdb_constraints()
WHERE database_name = 'm'
    AND schema_name = 's'
    AND table_name = 'it''s {{ x }}'
    AND constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'FOREIGN KEY')
ORDER BY constraint_index
