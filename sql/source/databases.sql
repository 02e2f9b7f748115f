-- Attached databases.
-- in:  nothing
-- out: catalog, path (NULL in memory), readonly, internal, type (of what keeps its tables)
SELECT
    database_name AS catalog,
    path,
    readonly,
    internal,
    type
FROM duckdb_databases()
