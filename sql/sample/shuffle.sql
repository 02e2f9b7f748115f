-- Rows by the values of a variable's parents, in a random order within each.
-- in:  source (query), shuffled (table), words (names), parent (expression), rank_bits (expression)
-- out: the columns of the source and parent, rows in that order
CREATE OR REPLACE TEMP TABLE {{ shuffled }} AS
SELECT
{% for word in words %}
    {{ word }},
{% endfor %}
    "row",
    {{ parent }} AS parent
FROM (
    {{ source }}
)
ORDER BY
    parent,
    hash(xor("row", {{ rank_bits }}))
