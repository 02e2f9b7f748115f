-- All rows of account, for checking and overviews.
-- in:  nothing
-- out: the table's columns, in order
SELECT *
FROM account
ORDER BY account_id
