-- How many synthetic rows an output has.
-- in:  table
-- out: rows
SELECT count(*) AS "rows"
FROM {{ table }}
