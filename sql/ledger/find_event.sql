-- One event of a release.
-- in:  :entry_id, :sequence, :ordinal
-- out: event; at most one row
SELECT event
FROM event
WHERE
    entry_id = :entry_id
    AND sequence = :sequence
    AND ordinal = :ordinal
