SELECT
    kind,
    amount,
    delta
FROM entry
WHERE account_id = :account_id
