UPDATE entry
SET
    state = :state,
    measured_on = :measured_on
WHERE entry_id = :entry_id
