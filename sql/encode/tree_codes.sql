-- Codes and weights of the kept rows of a table of a tree (private side).
-- in:  rows (a query: unit, n, w, the columns p<i> and those of the order),
--      before (of the row before: <expression> AS <name>, where unit_order is the window; often none),
--      order (columns: rows of one parent that tie in them are equal in all codes),
--      packed (mixed-radix codes: <expression> AS p<i>),
--      numbered (whether the number of the family and of its rows are kept too)
-- out: p0, p1, ..., w INTEGER (the weight of the row) and, if numbered, u BIGINT (the same for the rows of one parent)
--      and n INTEGER (how many these are), in the order of u
WITH family AS (
    SELECT
{% for column in before %}
        {{ column }},
{% endfor %}
        *
    FROM (
{{ rows }}
    ) AS kept
{% if before %}
    WINDOW
        unit_order AS (
            PARTITION BY
                unit
            ORDER BY
{% for column in order %}
                {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
        )
{% endif %}
)
SELECT
{% for column in packed %}
    {{ column }},
{% endfor %}
{% if numbered %}
    unit AS u,
    n,
{% endif %}
    w
FROM family
{% if numbered %}
ORDER BY
    u
{% endif %}
