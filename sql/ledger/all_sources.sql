-- All rows of source, for checking and overviews.
-- in:  nothing
-- out: the table's columns, in order
SELECT *
FROM source
ORDER BY name
