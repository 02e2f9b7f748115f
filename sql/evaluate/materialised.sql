-- The rows of a relation as a temporary table, where reading them again would parse text or run a query.
-- in:  table, relation (what stands after FROM)
-- out: a temporary table with the columns of the relation
CREATE TEMP TABLE {{ table }} AS
SELECT *
FROM {{ relation }}
