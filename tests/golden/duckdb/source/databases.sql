SELECT
    database_name AS catalog,
    path,
    readonly,
    internal
FROM duckdb_databases()
