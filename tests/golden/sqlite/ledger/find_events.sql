SELECT
    sequence,
    ordinal,
    event,
    amount,
    delta
FROM event
WHERE entry_id = :entry_id
ORDER BY
    sequence,
    ordinal
