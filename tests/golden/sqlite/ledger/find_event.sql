SELECT event
FROM event
WHERE
    entry_id = :entry_id
    AND sequence = :sequence
    AND ordinal = :ordinal
