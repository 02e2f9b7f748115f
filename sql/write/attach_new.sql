-- A new database file for the tables of a release, of a storage version that every supported version of DuckDB
-- reads.
-- in:  path (literal), name (identifier)
-- out: the file is attached
ATTACH {{ path }} AS {{ name }} (STORAGE_VERSION 'v1.2.0')
