-- The cumulative distributions of one node, to stand after FROM; values in their place of the word.
-- in:  table, condition (which of its rows), shift (of the place)
-- out: a subquery with the columns parent, value, low, high
(
    SELECT
        CAST(parent AS UBIGINT) AS parent,
        CAST(value AS UBIGINT) << {{ shift }} AS value,
        low,
        high
    FROM {{ table }}
    WHERE {{ condition }}
)
