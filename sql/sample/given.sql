-- Rows above, or persons, as the families of the rows below.
-- in:  parents (query: the column row and others), number (rows of a family: an expression), words (expressions AS w<i>; the
--      last one is of sofar: how many rows of the child table stand before those of the family)
-- out: a query with the columns row, n (rows of the family), w0, w1, ...
SELECT
{% for word in words %}
    {{ word }},
{% endfor %}
    n,
    "row"
FROM (
    SELECT
        *,
        CAST(sum(n) OVER (ORDER BY "row" ROWS UNBOUNDED PRECEDING) AS BIGINT) - n AS sofar
    FROM (
        SELECT
            *,
            {{ number }} AS n
        FROM (
{{ parents }}
        )
    )
)
