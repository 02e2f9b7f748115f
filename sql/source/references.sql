-- Foreign keys of the tables of a schema. A self-reference is none.
-- in:  catalog, schema (text literals)
-- out: name (of the table that refers), referenced (of the table that it refers to)
SELECT DISTINCT
    table_name AS name,
    referenced_table AS referenced
FROM duckdb_constraints()
WHERE database_name = {{ catalog }}
    AND schema_name = {{ schema }}
    AND constraint_type = 'FOREIGN KEY'
    AND table_name <> referenced_table
ORDER BY ALL
