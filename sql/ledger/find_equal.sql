-- Releases of one version and configuration, under any name, newest first.
-- in:  :account_id, :version (may be NULL), :configuration_hash
-- out: the entries' columns
SELECT *
FROM entry
WHERE
    account_id = :account_id
    AND configuration_hash = :configuration_hash
    AND version IS :version
ORDER BY entry_id DESC
