-- The alias table of one node, to stand after FROM: entries of lists, because one is read by its position in a
-- fraction of the time of a join.
-- in:  slots (to stand after FROM: position, threshold, value, alias), type (of packed values)
-- out: a subquery of one row with the columns thresholds, own, aliases: lists by position
(
    SELECT
        list(CAST(threshold AS UINTEGER) ORDER BY position) AS thresholds,
        list(CAST(value AS {{ type }}) ORDER BY position) AS own,
        list(CAST(alias AS {{ type }}) ORDER BY position) AS aliases
    FROM {{ slots }}
)
