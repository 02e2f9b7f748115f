-- The alias table of one node, to stand after FROM: one list, because an entry is read by its position in a
-- fraction of the time of a join. An entry is a word: from the low end the threshold, the own value and the alias.
-- in:  slots (to stand after FROM: position, threshold, value, alias), threshold_bits, bits (of packed values), column
--      (name of the list)
-- out: a subquery of one row with this column
(
    SELECT
        list(
            CAST(threshold AS UBIGINT)
            | (CAST(coalesce(value, 0) AS UBIGINT) << {{ threshold_bits }})
            | (CAST(alias AS UBIGINT) << {{ threshold_bits + bits }})
            ORDER BY position
        ) AS {{ column }}
    FROM {{ slots }}
)
