-- How many persons there are.
-- in:  rows (what stands after FROM), id (the id of a row as bytes)
-- out: one row: persons BIGINT
SELECT count(DISTINCT {{ id }}) AS persons
FROM {{ rows }}
