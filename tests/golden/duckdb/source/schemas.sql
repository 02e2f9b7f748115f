SELECT
    database_name AS catalog,
    schema_name AS schema
FROM duckdb_schemas()
