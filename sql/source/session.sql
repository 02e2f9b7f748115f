-- Where unqualified names are looked up.
-- in:  nothing
-- out: catalog, schema, search_path (empty when it was never set)
SELECT
    current_database() AS catalog,
    current_schema() AS schema,
    current_setting('search_path') AS search_path
