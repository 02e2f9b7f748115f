-- Make an account without a limit.
-- in:  :name, :kind, :shown_delta
-- out: one row of account
INSERT INTO account (name, kind, shown_delta)
VALUES (:name, :kind, :shown_delta)
