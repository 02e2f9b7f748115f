-- A table that is written anew; tables that refer to it are dropped before.
-- in:  table (qualified name)
-- out: nothing
DROP TABLE IF EXISTS {{ table }}
