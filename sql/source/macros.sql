-- Macros that somebody has made: listing every function to find them takes twice as long.
-- The catalog's own function is called by its full name, because a macro may have taken its short one.
-- in:  nothing
-- out: name, of macros of values and of tables
SELECT DISTINCT function_name AS name
FROM system.main.duckdb_functions()
WHERE function_type IN ('macro', 'table_macro')
    AND NOT internal
