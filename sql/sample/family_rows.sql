-- The rows of units before any variable of a row is drawn: their numbers, and the words of their unit.
-- in:  persons (query: the columns row, w0, w1, ...), words (names), stride (more than a unit has rows),
--      number (rows of the unit of a row: an expression)
-- out: a query with the columns row (that of the unit times stride, and from 1 on the place in it), w0, w1, ...
SELECT
{% for word in words %}
    {{ word }},
{% endfor %}
    CAST(person * {{ stride }} + place AS UBIGINT) AS "row"
FROM (
    SELECT
        *,
        "row" AS person,
        unnest(range(1, {{ number }} + 1)) AS place
    FROM (
{{ persons }}
    )
)
