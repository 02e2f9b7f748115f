-- The cumulative distributions of one node, to stand after FROM; values in their place of the word.
-- in:  table, condition (which of its rows), shift (of the place), ends (0 or 1)
-- out: a subquery with the columns parent, value, low and, with ends, high
(
    SELECT
        CAST(parent AS UBIGINT) AS parent,
        CAST(value AS UBIGINT) << {{ shift }} AS value,
{% if ends %}
        high,
{% endif %}
        low
    FROM {{ table }}
    WHERE {{ condition }}
)
