-- Attach a DuckDB file.
-- in:  path (text literal), name (identifier), read_only (1 | 0)
-- out: nothing
ATTACH {{ path }} AS {{ name }} (TYPE duckdb{% if read_only %}, READ_ONLY{% endif %})
