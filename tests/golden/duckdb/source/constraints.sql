SELECT
    constraint_type AS kind,
    expression,
    constraint_column_names AS columns
FROM duckdb_constraints()
WHERE database_name = 'm'
    AND schema_name = 's'
    AND table_name = 'it''s {{ x }}'
    AND constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'CHECK')
ORDER BY constraint_index
