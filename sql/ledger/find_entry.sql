-- One release by its id.
-- in:  :entry_id
-- out: the entry's columns
SELECT *
FROM entry
WHERE entry_id = :entry_id
