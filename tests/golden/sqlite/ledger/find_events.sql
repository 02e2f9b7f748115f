SELECT
    sequence,
    ordinal,
    event,
    amount,
    delta
FROM event
WHERE
    entry_id = :entry_id
    AND sequence >= 0
ORDER BY
    sequence,
    ordinal
