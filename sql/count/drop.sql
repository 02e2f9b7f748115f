-- Drop the table of codes (private) as soon as nothing more is asked.
-- in:  table
-- out: nothing
DROP TABLE IF EXISTS {{ table }}
