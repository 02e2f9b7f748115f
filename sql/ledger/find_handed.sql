-- What stopped releases of an account have handed on.
-- in:  :account_id
-- out: event (names the release that took it), amount, delta
SELECT
    event.event,
    event.amount,
    event.delta
FROM entry
INNER JOIN event
    ON
        entry.entry_id = event.entry_id
        AND event.sequence = -1
        AND event.ordinal > 0
WHERE entry.account_id = :account_id
ORDER BY
    entry.entry_id,
    event.ordinal
