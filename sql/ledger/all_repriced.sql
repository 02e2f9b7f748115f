-- The records of accounts that were priced anew, in order.
-- in:  nothing
-- out: body of each
SELECT body
FROM record
WHERE kind = 'repriced'
ORDER BY position
