-- What a release costs in its account that is priced anew.
-- in:  :entry_id, :amount
-- out: one row of price
INSERT INTO price (entry_id, amount)
VALUES (:entry_id, :amount)
