-- State that a column of a new table has no NULL, as the catalog of the source does.
-- in:  table (qualified name), column (quoted name)
-- out: the constraint
ALTER TABLE {{ table }} ALTER COLUMN {{ column }} SET NOT NULL
