SELECT *
FROM account
ORDER BY account_id
