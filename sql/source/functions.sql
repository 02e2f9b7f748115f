-- What the catalog says of every function: only row-wise, repeatable ones may stand in a checked query, and
-- built-in ones must be as they were brought.
-- The catalog's own function is called by its full name, because a macro may have taken its short one.
-- in:  nothing
-- out: name, kind, internal, stability (NULL for what is no scalar or aggregate), parameters (their types),
--      names (of the parameters), more (the type of further ones), result, effects, described, number (in
--      the order of making)
SELECT DISTINCT
    function_name AS name,
    function_type AS kind,
    internal,
    stability,
    CAST(parameter_types AS VARCHAR) AS parameters,
    CAST(parameters AS VARCHAR) AS names,
    varargs AS more,
    return_type AS result,
    has_side_effects AS effects,
    description IS NOT NULL AS described,
    function_oid AS number
FROM system.main.duckdb_functions()
