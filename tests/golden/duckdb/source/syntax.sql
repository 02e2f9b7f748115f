SELECT
    json_serialize_sql('SELECT ''x''') AS tree
