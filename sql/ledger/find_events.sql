-- What a release reserved for its questions, in order.
-- in:  :entry_id
-- out: sequence, ordinal, event, amount, delta
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
