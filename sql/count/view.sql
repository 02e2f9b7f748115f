-- A table in a file of ours, under the name of a temporary table.
-- in:  view, table
-- out: a temporary view of the table
CREATE TEMP VIEW {{ view }} AS
FROM {{ table }}
