INSERT INTO source (name, account_id)
VALUES (:name, :account_id)
