SELECT body
FROM record
WHERE kind = 'repriced'
ORDER BY position
