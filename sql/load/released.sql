-- Whether a table is the one that a release wrote: its comment has the id of the release, and goes with the table.
-- in:  database, schema, name (text literals), release (text literal of its id)
-- out: one row: found (0 or 1)
SELECT count(*) AS found
FROM duckdb_tables()
WHERE lower(database_name) = lower({{ database }})
AND lower(schema_name) = lower({{ schema }})
AND lower(table_name) = lower({{ name }})
AND contains(comment, {{ release }})
