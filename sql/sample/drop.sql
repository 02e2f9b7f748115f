-- Tidy up.
-- in:  table (perhaps never made)
-- out: it is gone
DROP TABLE IF EXISTS {{ table }}
