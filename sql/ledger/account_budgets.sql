-- Every debit of an account.
-- in:  :account_id
-- out: kind, amount, delta of each entry
SELECT
    kind,
    amount,
    delta
FROM entry
WHERE account_id = :account_id
