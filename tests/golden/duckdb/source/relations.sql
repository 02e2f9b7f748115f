SELECT
    database_name AS catalog,
    schema_name AS schema,
    table_name AS name,
    'table' AS kind,
    CAST(NULL AS VARCHAR) AS definition,
    temporary
FROM duckdb_tables()
WHERE NOT internal
UNION ALL
SELECT
    database_name AS catalog,
    schema_name AS schema,
    view_name AS name,
    'view' AS kind,
    sql AS definition,
    temporary
FROM duckdb_views()
WHERE NOT internal
