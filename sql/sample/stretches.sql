-- The stretches of one node, to stand after FROM: the numbers from low to high (below 2^32, both included) that
-- draw a value, once for every slot of 2^slot_bits equal ones that they touch.
-- in:  lines (to stand after FROM: parent, value, low, high), slot_bits
-- out: a subquery with the columns key (of parent and slot), low, high, value
(
    SELECT
        (CAST(parent AS UBIGINT) << {{ slot_bits }}) | CAST(touched AS UBIGINT) AS key,
        low,
        high,
        value
    FROM (
        SELECT
            parent,
            low,
            high,
            value,
            unnest(range(
                CAST(low >> {{ 32 - slot_bits }} AS BIGINT),
                CAST(high >> {{ 32 - slot_bits }} AS BIGINT) + 1
            )) AS touched
        FROM {{ lines }}
    )
)
