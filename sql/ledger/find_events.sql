-- Events of a release in order.
-- in:  :entry_id
-- out: sequence, ordinal, event, amount, delta
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
