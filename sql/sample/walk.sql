-- Rows of units, place by place: a row follows from its unit and from the row before it. A unit stands at place 0
-- before its rows.
-- in:  persons (query: the columns row, w0, w1, ...), words (names), stride (more than a unit has rows),
--      number (rows of the unit of a row: an expression), lists (by node: name, and what stands after FROM),
--      drawn (query of the next rows of walk: row, w0, w1, ..., n, code, tick, before), kept (expressions of code
--      and tick, as code and tick), codes (<expression> AS a<i>)
-- out: a query with the columns row (that of the unit times stride, and from 1 on the place in it), a0, a1, ...
WITH RECURSIVE
{% for name, list in lists %}
{{ name }} AS MATERIALIZED (
    SELECT *
    FROM {{ list }}
),
{% endfor %}
walk AS (
    SELECT
{% for word in words %}
        {{ word }},
{% endfor %}
        CAST({{ number }} AS BIGINT) AS n,
        CAST(-1 AS BIGINT) AS code,
        CAST(-1 AS BIGINT) AS highest,
        CAST(0 AS BIGINT) AS tick,
        CAST("row" * {{ stride }} AS BIGINT) AS "row"
    FROM (
{{ persons }}
    )
    UNION ALL
    SELECT
{% for word in words %}
        {{ word }},
{% endfor %}
        n,
{% for expression in kept %}
        {{ expression }},
{% endfor %}
        "row"
    FROM (
{{ drawn }}
    )
)
SELECT
    "row",
{% for code in codes %}
    {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM walk
WHERE "row" % {{ stride }} > 0
