SELECT
    database_name AS catalog,
    path,
    readonly,
    internal,
    type
FROM duckdb_databases()
