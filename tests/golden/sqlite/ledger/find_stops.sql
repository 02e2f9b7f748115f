SELECT
    entry.entry_id,
    entry.release_id,
    entry.name,
    entry.state,
    entry.kind,
    entry.amount,
    entry.delta,
    mark.event AS stop,
    (SELECT ifnull(sum(event.amount), 0) FROM event WHERE event.entry_id = entry.entry_id) AS spent_amount,
    (SELECT ifnull(sum(event.delta), 0) FROM event WHERE event.entry_id = entry.entry_id) AS spent_delta,
    (SELECT max(event.sequence) FROM event WHERE event.entry_id = entry.entry_id) AS last,
    (
        SELECT count(*)
        FROM event
        WHERE
            event.entry_id = entry.entry_id
            AND event.sequence = -1
            AND event.ordinal > 0
    ) AS handed
FROM entry
INNER JOIN event AS mark
    ON
        entry.entry_id = mark.entry_id
        AND mark.sequence = -1
        AND mark.ordinal = 0
WHERE entry.account_id = :account_id
ORDER BY entry.entry_id
