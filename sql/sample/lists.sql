-- The alias table of one node, to stand after FROM: entries of lists, because one is read by its position in a
-- fraction of the time of a join.
-- in:  table, condition (which of its rows), type (of packed values), missing (stands for no value)
-- out: a subquery of one row with the columns thresholds, own, aliases: lists by parent and slot
(
    SELECT
        list(threshold ORDER BY parent, slot) AS thresholds,
        list(CAST(nullif(value, {{ missing }}) AS {{ type }}) ORDER BY parent, slot) AS own,
        list(CAST(nullif(alias, {{ missing }}) AS {{ type }}) ORDER BY parent, slot) AS aliases
    FROM {{ table }}
    WHERE {{ condition }}
)
