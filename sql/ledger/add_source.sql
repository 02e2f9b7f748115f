-- Bind a source to an account for good.
-- in:  :name, :account_id
-- out: one row of source
INSERT INTO source (name, account_id)
VALUES (:name, :account_id)
