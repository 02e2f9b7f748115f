-- All rows of record, for checking and overviews.
-- in:  nothing
-- out: the table's columns, in order
SELECT *
FROM record
ORDER BY position
