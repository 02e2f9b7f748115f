-- Remove sampled rows that cannot be.
-- in:  staged (table with the columns row, a0, a1, ...), impossible (query of their numbers)
-- out: nothing
DELETE FROM {{ staged }}
WHERE "row" IN (
{{ impossible }}
)
