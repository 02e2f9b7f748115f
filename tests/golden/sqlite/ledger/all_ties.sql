SELECT body
FROM record
WHERE kind = 'tied'
ORDER BY position
