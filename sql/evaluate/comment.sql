-- The comment on one table, as the catalog has it.
-- in:  catalog, schema, name (text literals)
-- out: comment (empty if there is none)
SELECT coalesce(comment, '') AS comment
FROM duckdb_tables()
WHERE database_name = {{ catalog }}
    AND schema_name = {{ schema }}
    AND table_name = {{ name }}
