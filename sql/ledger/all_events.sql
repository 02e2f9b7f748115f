-- All rows of event, for checking and overviews.
-- in:  nothing
-- out: the table's columns, in order
SELECT *
FROM event
ORDER BY
    entry_id,
    sequence,
    ordinal
