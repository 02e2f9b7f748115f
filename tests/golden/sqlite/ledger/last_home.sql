SELECT body
FROM record
WHERE
    kind = 'moved'
    OR position = 1
ORDER BY position DESC
LIMIT 1
