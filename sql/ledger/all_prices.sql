-- All rows of price, for checking and overviews.
-- in:  nothing
-- out: the table's columns, in order
SELECT *
FROM price
ORDER BY entry_id
