-- Staged rows of a root, numbered from 0 on without holes.
-- in:  table (to make), staged (table with the columns row, a0, a1, ...)
-- out: a temporary table with the columns of staged, and drawn: the number that random bits of a row come from
CREATE TEMPORARY TABLE {{ table }} AS
SELECT
    * REPLACE (row_number() OVER (ORDER BY "row") - 1 AS "row"),
    "row" AS drawn
FROM {{ staged }}
