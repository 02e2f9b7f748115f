-- A table in a file of ours, under the name of a temporary table.
-- in:  view, table
-- out: a temporary view of the table, with the places of its rows as the table has them
CREATE TEMP VIEW {{ view }} AS
SELECT
    *,
    rowid AS rowid
FROM {{ table }}
