SELECT *
FROM entry
WHERE
    account_id = :account_id
    AND configuration_hash = :configuration_hash
    AND version IS :version
ORDER BY entry_id DESC
