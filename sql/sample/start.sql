-- Rows before any variable is drawn: their numbers, and words of zeros.
-- in:  numbers (to stand after FROM: a column range, and lists), words (names), steps (by node: columns, of its lists)
-- out: a query with the columns row, w0, w1, ..., and those of the lists
SELECT
{% for word in words %}
    CAST(0 AS UBIGINT) AS {{ word }},
{% endfor %}
{% for step in steps %}
{% for column in step.columns %}
    {{ column }},
{% endfor %}
{% endfor %}
    CAST(range AS UBIGINT) AS "row"
FROM {{ numbers }}
