SELECT
    position,
    hash
FROM record
ORDER BY position DESC
LIMIT 1
