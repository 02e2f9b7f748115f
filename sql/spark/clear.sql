-- Let rows go that are counted (private side, in a task).
-- in:  table
-- out: nothing
DELETE FROM {{ table }}
