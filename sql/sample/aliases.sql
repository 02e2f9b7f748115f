-- The alias tables of one node, to stand after FROM; values in their place of the word, cuts in units of
-- 2^-64 (the largest number for 1: the alias of such a slot is its value).
-- in:  table, condition (which of its rows), shift (of the place), slot_bits
-- out: a subquery with the columns key, cut, value, alias
(
    SELECT
        CAST((parent << {{ slot_bits }}) | slot AS UBIGINT) AS key,
        CAST(LEAST(CAST(cut AS HUGEINT) << 32, 18446744073709551615) AS UBIGINT) AS cut,
        CAST(value AS UBIGINT) << {{ shift }} AS value,
        CAST(alias AS UBIGINT) << {{ shift }} AS alias
    FROM {{ table }}
    WHERE {{ condition }}
)
