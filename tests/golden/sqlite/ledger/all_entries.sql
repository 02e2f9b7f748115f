SELECT *
FROM entry
ORDER BY entry_id
