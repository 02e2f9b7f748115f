INSERT INTO event (entry_id, sequence, ordinal, event, amount, delta)
VALUES (:entry_id, :sequence, :ordinal, :event, :amount, :delta)
