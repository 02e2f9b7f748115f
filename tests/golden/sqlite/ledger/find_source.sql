SELECT account.name AS account
FROM source
INNER JOIN account ON account.account_id = source.account_id
WHERE source.name = :name
