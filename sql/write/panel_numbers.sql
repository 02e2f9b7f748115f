-- A table of the persons of staged rows.
-- in:  table (quoted name)
-- out: the table: row BIGINT, person BIGINT
CREATE TEMPORARY TABLE {{ table }} ("row" BIGINT, person BIGINT)
