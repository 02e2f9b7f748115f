-- The keys of a column with their numbers of units, numbered, to be read in parts (private side).
-- in:  table, counted (the statement that counts units per key)
-- out: temporary table: place BIGINT (0, 1, ... in the order of the keys), thing, units BIGINT
{{ dialect.create_temporary }} {{ table }} AS
SELECT
    row_number() OVER (
        ORDER BY
            thing
    ) - 1 AS place,
    thing,
    units
FROM (
{{ counted }}
) AS counted
