SELECT
    ifnull(sum(amount), 0) AS amount,
    ifnull(sum(delta), 0) AS delta
FROM event
WHERE entry_id = :entry_id
