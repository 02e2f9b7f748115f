-- The drawn values take their place in the words.
-- in:  shuffled, outcomes and work (tables), words (the new word AS its name)
-- out: the columns row, w0, w1, ...
CREATE OR REPLACE TEMP TABLE {{ work }} AS
SELECT
{% for word in words %}
    {{ word }},
{% endfor %}
    "row"
FROM {{ shuffled }}
POSITIONAL JOIN {{ outcomes }}
