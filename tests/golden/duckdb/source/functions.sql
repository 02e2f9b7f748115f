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
