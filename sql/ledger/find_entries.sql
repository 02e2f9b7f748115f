-- Releases of one name and version, newest first.
-- in:  :account_id, :name, :version (may be NULL)
-- out: the entries' columns
SELECT *
FROM entry
WHERE
    account_id = :account_id
    AND name = :name
    AND version IS :version
ORDER BY entry_id DESC
