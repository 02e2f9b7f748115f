-- Keys of one table and whose keys it names, as the catalog states them.
-- in:  catalog, schema, name (text literals)
-- out: kind ('PRIMARY KEY' | 'UNIQUE' | 'FOREIGN KEY'), columns (names, joined by a NUL), target (a table), named
--      (its columns, joined by a NUL)
SELECT
    constraint_type AS kind,
    array_to_string(constraint_column_names, chr(0)) AS columns,
    coalesce(referenced_table, '') AS target,
    coalesce(array_to_string(referenced_column_names, chr(0)), '') AS named
FROM duckdb_constraints()
WHERE database_name = {{ catalog }}
    AND schema_name = {{ schema }}
    AND table_name = {{ name }}
    AND constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'FOREIGN KEY')
ORDER BY constraint_index
