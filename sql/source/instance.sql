-- The name of the database instance, if it has one.
-- in:  mark (how such names begin)
-- out: name
SELECT DISTINCT function_name AS name
FROM system.main.duckdb_functions()
WHERE starts_with(function_name, {{ mark }})
ORDER BY name
