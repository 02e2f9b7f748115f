-- The distributions of one node, to stand after FROM: the stretch of numbers from low to high (below 2^32, both
-- included) that draw a value, once for every slot of 2^slot_bits equal ones that it touches; values in their
-- place of the word.
-- in:  table, condition (which of its rows), shift (of the place), slot_bits
-- out: a subquery with the columns key (of parent and slot), low, high, value
(
    SELECT
        (CAST(parent AS UBIGINT) << {{ slot_bits }}) | CAST(slot AS UBIGINT) AS key,
        low,
        high,
        value
    FROM (
        SELECT
            parent,
            low,
            high,
            CAST(value AS UBIGINT) << {{ shift }} AS value,
            unnest(range(
                CAST(low >> {{ 32 - slot_bits }} AS BIGINT),
                CAST(high >> {{ 32 - slot_bits }} AS BIGINT) + 1
            )) AS slot
        FROM {{ table }}
        WHERE {{ condition }}
    )
)
