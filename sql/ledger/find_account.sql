-- One account by its name.
-- in:  :name
-- out: the account's columns; at most one row
SELECT *
FROM account
WHERE name = :name
