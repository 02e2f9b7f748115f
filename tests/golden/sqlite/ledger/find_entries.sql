SELECT *
FROM entry
WHERE
    account_id = :account_id
    AND name = :name
    AND version IS :version
ORDER BY entry_id DESC
