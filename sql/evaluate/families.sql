-- The rows of units as codes, each with the number of rows of its unit.
-- in:  table, relation (rows with side, part, unit, codes and perhaps a moment)
-- out: a temporary table: the columns of the relation, and n BIGINT; rows without a unit are left out
CREATE TEMP TABLE {{ table }} AS
SELECT
    *,
    count(*) OVER (PARTITION BY part, unit) AS n
FROM {{ relation }}
WHERE side < 2
    AND unit IS NOT NULL
