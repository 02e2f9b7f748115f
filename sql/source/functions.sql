-- What the catalog says of every function: only row-wise, repeatable ones may stand in a checked query.
-- The catalog's own function is called by its full name, because a macro may have taken its short one.
-- in:  nothing
-- out: name, kind, internal, stability (NULL for what is no scalar or aggregate), parameters (their types)
SELECT DISTINCT
    function_name AS name,
    function_type AS kind,
    internal,
    stability,
    CAST(parameter_types AS VARCHAR) AS parameters
FROM system.main.duckdb_functions()
