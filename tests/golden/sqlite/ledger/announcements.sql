SELECT
    kind,
    body
FROM record
WHERE kind IN ('publishing', 'withdrawn')
ORDER BY position
