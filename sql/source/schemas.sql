-- Schemas of every attached database.
-- in:  nothing
-- out: catalog, schema
SELECT
    database_name AS catalog,
    schema_name AS schema
FROM duckdb_schemas()
