-- Keys of one table and what its foreign keys name, as the catalog states them.
-- in:  catalog, schema, name (text literals)
-- out: kind ('PRIMARY KEY' | 'UNIQUE' | 'FOREIGN KEY'), columns (a list of names), referenced (the table that a
--      foreign key names, in the same schema), referenced_columns (a list of names)
SELECT
    constraint_type AS kind,
    constraint_column_names AS columns,
    COALESCE(referenced_table, '') AS referenced,
    referenced_column_names AS referenced_columns
FROM duckdb_constraints()
WHERE database_name = {{ catalog }}
    AND schema_name = {{ schema }}
    AND table_name = {{ name }}
    AND constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'FOREIGN KEY')
ORDER BY constraint_index
