SELECT *
FROM entry
WHERE entry_id = :entry_id
