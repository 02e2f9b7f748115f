(
    SELECT
        CAST(json_object(
            'catalog', current_database(),
            'schema', current_schema(),
            'search_path', current_setting('search_path'),
            'relations', coalesce(json_group_array(json_object(
                'catalog', seen.catalog,
                'schema', seen.schema,
                'name', seen.name,
                'kind', seen.kind,
                'temporary', seen.temporary
            )), json_array())
        ) AS VARCHAR)
    FROM (
        SELECT
            database_name AS catalog,
            schema_name AS schema,
            table_name AS name,
            'table' AS kind,
            temporary
        FROM duckdb_tables()
        WHERE NOT internal
        UNION ALL
        SELECT
            database_name AS catalog,
            schema_name AS schema,
            view_name AS name,
            'view' AS kind,
            temporary
        FROM duckdb_views()
        WHERE NOT internal
    ) AS seen
)
