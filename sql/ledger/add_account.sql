-- Make an account without a limit.
-- in:  :name, :kind
-- out: one row of account
INSERT INTO account (name, kind)
VALUES (:name, :kind)
