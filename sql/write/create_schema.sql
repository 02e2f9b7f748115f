-- The schema of the tables of one release.
-- in:  schema (qualified name)
-- out: the schema, if it was missing
CREATE SCHEMA IF NOT EXISTS {{ schema }}
