-- All rows of publication, for checking and overviews.
-- in:  nothing
-- out: the table's columns, in order
SELECT *
FROM publication
ORDER BY
    entry_id,
    ordinal
