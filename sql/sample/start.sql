-- Rows before any variable is drawn: their numbers, and words of zeros.
-- in:  numbers (to stand after FROM: a column range), words (names)
-- out: a query with the columns row, w0, w1, ...
SELECT
{% for word in words %}
    CAST(0 AS UBIGINT) AS {{ word }},
{% endfor %}
    CAST(range AS UBIGINT) AS "row"
FROM {{ numbers }}
