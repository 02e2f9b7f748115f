INSERT INTO price (entry_id, amount)
VALUES (:entry_id, :amount)
