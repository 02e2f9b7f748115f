-- A variable that its parents decide takes its place in the words.
-- in:  source (query), parent (expression), relation (parent, value), words (expressions with names)
-- out: a query with the columns row, w0, w1, ...
SELECT
{% for word in words %}
    {{ word }},
{% endfor %}
    "row"
FROM (
    {{ source }}
)
INNER JOIN {{ relation }} AS d
    ON d.parent = {{ parent }}
