SELECT *
FROM record
ORDER BY position
