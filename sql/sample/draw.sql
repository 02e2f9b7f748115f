-- The drawn values take their place in the words.
-- in:  shuffled and outcomes (tables), work (table), words (expressions with names)
-- out: work with the columns row, w0, w1, ...
CREATE OR REPLACE TEMP TABLE {{ work }} AS
SELECT
{% for word in words %}
    {{ word }},
{% endfor %}
    "row"
FROM {{ shuffled }}
POSITIONAL JOIN {{ outcomes }}
