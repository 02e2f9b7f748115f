-- Constraints of one table that say something of single columns or rows, as the catalog states them.
-- in:  catalog, schema, name (text literals)
-- out: kind ('PRIMARY KEY' | 'UNIQUE' | 'CHECK'), expression (of a CHECK), columns (a list of names)
SELECT
    constraint_type AS kind,
    expression,
    constraint_column_names AS columns
FROM duckdb_constraints()
WHERE database_name = {{ catalog }}
    AND schema_name = {{ schema }}
    AND table_name = {{ name }}
    AND constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'CHECK')
ORDER BY constraint_index
