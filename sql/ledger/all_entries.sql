-- All rows of entry, for checking and overviews.
-- in:  nothing
-- out: the table's columns, in order
SELECT *
FROM entry
ORDER BY entry_id
