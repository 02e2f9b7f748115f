-- Rows of units, place by place: a row follows from its unit, its moment and the row before it. A unit stands at
-- place 0 before its rows. A macro of DuckDB 1.5 forgets MATERIALIZED, but what is named twice is made once all the
-- same: hence EXISTS, which is always so. Within the recursion an ASOF join would be refused.
-- in:  words (names), stride (more than a unit has rows), lists (by node: name, and what stands after FROM),
--      moments (query: number of a row, n, m0, m1, ...), drawn (query of the next rows of walk: row, w0, w1, ...,
--      tick of the row before, own), tick (expression of a row's), codes (<expression> AS a<i>)
-- out: a query with the columns row (that of the unit times stride, and from 1 on the place in it), a0, a1, ...
WITH RECURSIVE
{% for name, list in lists %}
{{ name }} AS MATERIALIZED (
    SELECT *
    FROM {{ list }}
),
{% endfor %}
moments AS MATERIALIZED (
{{ moments }}
),
walk AS (
    SELECT
{% for word in words %}
        CAST(0 AS UBIGINT) AS {{ word }},
{% endfor %}
        CAST(0 AS BIGINT) AS tick,
        number - 1 AS "row"
    FROM moments
    WHERE
        number % {{ stride }} = 1
{% for name, _ in lists %}
        AND EXISTS (FROM {{ name }})
{% endfor %}
    UNION ALL
    SELECT
{% for word in words %}
        {{ word }},
{% endfor %}
        {{ tick }} AS tick,
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
