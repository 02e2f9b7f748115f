-- What stands for the rows of a release whose model cannot be sampled by SQL.
-- in:  message (literal)
-- out: a query that fails with the message
SELECT error({{ message }}) AS problem
