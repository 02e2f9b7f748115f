-- Rows of a child table, numbered from 0 on without holes, families in the order of their parents.
-- in:  drawn (query: the columns row (that of the parent times stride, and from 1 on the place in the family), sofar (rows
--      before those of the family), codes), stride, codes (names)
-- out: a query with the columns row, parent (row of the parent), rank (place in the family, from 0 on), and the codes
SELECT
    sofar + "row" % {{ stride }} - 1 AS "row",
    "row" // {{ stride }} AS parent,
    "row" % {{ stride }} - 1 AS rank,
{% for code in codes %}
    {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM (
{{ drawn }}
)
