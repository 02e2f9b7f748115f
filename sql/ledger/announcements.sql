-- Outputs that releases were about to write, and those they found taken, in order.
-- in:  nothing
-- out: kind ('publishing' | 'withdrawn'), body (canonical JSON: release, target)
SELECT
    kind,
    body
FROM record
WHERE kind IN ('publishing', 'withdrawn')
ORDER BY position
