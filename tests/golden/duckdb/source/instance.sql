SELECT DISTINCT function_name AS name
FROM system.main.duckdb_functions()
WHERE starts_with(function_name, 'dpsyn_instance_')
ORDER BY name
