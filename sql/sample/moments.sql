-- Rows of units with their moments, in the order of the moments.
-- in:  drawn (query: the columns row, w0, w1, ...), own (code of the moment: an expression), columns (<expression> AS
--      m<i>, from the words and own), stride (more than a unit has rows)
-- out: a query with the columns number (that of the unit times stride, and from 1 on the rank in it), n (rows of the
--      unit), in_bin (rows of the unit from this one on that have its moment), m0, m1, ...
SELECT
{% for column in columns %}
    {{ column }},
{% endfor %}
    count(*) OVER (PARTITION BY "row" // {{ stride }}) AS n,
    count(*) OVER (PARTITION BY "row" // {{ stride }}, own ORDER BY "row" DESC) AS in_bin,
    "row" // {{ stride }} * {{ stride }}
        + row_number() OVER (PARTITION BY "row" // {{ stride }} ORDER BY own, "row") AS number
FROM (
    SELECT
        *,
        {{ own }} AS own
    FROM (
{{ drawn }}
    )
)
