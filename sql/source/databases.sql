-- Attached databases.
-- in:  nothing
-- out: catalog, path (NULL in memory), readonly, internal
SELECT
    database_name AS catalog,
    path,
    readonly,
    internal
FROM duckdb_databases()
