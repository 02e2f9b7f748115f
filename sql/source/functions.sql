-- What the catalog says of every function: only row-wise, repeatable ones may stand in a checked query.
-- in:  nothing
-- out: name, kind, internal, stability (NULL for what is no scalar or aggregate)
SELECT DISTINCT
    function_name AS name,
    function_type AS kind,
    internal,
    stability
FROM duckdb_functions()
