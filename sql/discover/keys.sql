-- The keys of a column with their numbers of units, numbered, to be read in parts (private side).
-- in:  table, gathered (the table of thing and n), order (what the keys ascend by, as an expression of thing)
-- out: temporary table: place BIGINT (0, 1, ... in the order of the keys), thing, n BIGINT (units)
CREATE TEMP TABLE {{ table }} AS
SELECT
    row_number() OVER (
        ORDER BY
            {{ order }}
    ) - 1 AS place,
    thing,
    n
FROM {{ gathered }}
