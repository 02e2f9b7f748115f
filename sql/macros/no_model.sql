-- What stands for the rows of a release whose model cannot be sampled by SQL. The error is in WHERE: an output column
-- that nobody reads, as under count(*), is not computed, and the query would give one row.
-- in:  message (literal)
-- out: a query that fails with the message
SELECT 1 AS problem
WHERE error({{ message }}) IS NULL
