-- By what the sources of releases are tied to their units, in order.
-- in:  nothing
-- out: body (canonical JSON: account, release, ties)
SELECT body
FROM record
WHERE kind = 'tied'
ORDER BY position
