-- Reserve an event within the debit.
-- in:  :entry_id, :sequence, :ordinal, :event (canonical JSON), :amount, :delta
-- out: one row of event
INSERT INTO event (entry_id, sequence, ordinal, event, amount, delta)
VALUES (:entry_id, :sequence, :ordinal, :event, :amount, :delta)
