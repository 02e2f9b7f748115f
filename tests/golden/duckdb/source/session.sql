SELECT
    current_database() AS catalog,
    current_schema() AS schema,
    current_setting('search_path') AS search_path
