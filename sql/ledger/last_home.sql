-- Where the ledger says it lies and its names begin.
-- in:  nothing
-- out: body (canonical JSON: place, home) of the last record that says so; at most one row
SELECT body
FROM record
WHERE
    kind = 'moved'
    OR position = 1
ORDER BY position DESC
LIMIT 1
