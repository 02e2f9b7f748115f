-- The end of the chain.
-- in:  nothing
-- out: position, hash of the last record; no row in a new ledger
SELECT
    position,
    hash
FROM record
ORDER BY position DESC
LIMIT 1
