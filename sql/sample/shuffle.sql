-- Rows by the values of a variable's parents, in a random order within each.
-- in:  work (table), shuffled (table), words (names), parent (expression), rank_bits (expression)
-- out: the columns of work and parent, rows in that order
CREATE OR REPLACE TEMP TABLE {{ shuffled }} AS
SELECT
{% for word in words %}
    {{ word }},
{% endfor %}
    "row",
    {{ parent }} AS parent
FROM {{ work }}
ORDER BY
    parent,
    hash(xor(CAST("row" AS UBIGINT), {{ rank_bits }}))
