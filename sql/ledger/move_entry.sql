-- Move a release to its next state; the trigger refuses any other way.
-- in:  :entry_id, :state, :measured_on
-- out: one row changed
UPDATE entry
SET
    state = :state,
    measured_on = :measured_on
WHERE entry_id = :entry_id
