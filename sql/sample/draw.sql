-- The drawn values take their place in the words.
-- in:  shuffled and outcomes (tables), words (expressions with names)
-- out: a query with the columns row, w0, w1, ...
SELECT
{% for word in words %}
    {{ word }},
{% endfor %}
    "row"
FROM {{ shuffled }}
POSITIONAL JOIN {{ outcomes }}
