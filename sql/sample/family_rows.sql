-- The rows of families before any variable of a row is drawn: their numbers, and the words of the family.
-- in:  given (query: the columns row, n (rows of the family), w0, w1, ...), words (names), stride (more than a family has
--      rows)
-- out: a query with the columns row (that of the family times stride, and from 1 on the place in it), w0, w1, ...
SELECT
{% for word in words %}
    {{ word }},
{% endfor %}
    CAST(family * {{ stride }} + place AS UBIGINT) AS "row"
FROM (
    SELECT
        *,
        "row" AS family,
        unnest(range(1, n + 1)) AS place
    FROM (
{{ given }}
    )
)
