-- The file beside an output file that keeps the model; made if it does not exist. The storage version is one
-- that every supported version of DuckDB reads.
-- in:  path (literal), name (identifier)
-- out: the file is attached
ATTACH {{ path }} AS {{ name }} (STORAGE_VERSION 'v1.2.0')
