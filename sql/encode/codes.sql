-- Codes and weights of the kept rows of a table, with what the rows of a family decide together (private side).
-- A family is the rows of one row of the table above.
-- in:  rows (a query: parent, the same for the rows of a family; n, w, the columns p<i> and those of the order),
--      repeated (of a row among those of its family: <expression> AS <name>; often none),
--      shared (aggregates over all rows of a family: <expression> AS <name>, where family_rows is the window; often none),
--      classes (of a family, aggregates of all its rows: <expression> AS z<i>; often none),
--      before (of the row before: <expression> AS <name>, where family_order is the window; often none),
--      order (columns: rows of a family that tie in them are equal in all codes; with before),
--      packed (mixed-radix codes: <expression> AS p<i>), weighted (whether the weight stays),
--      numbered (whether the number of the family and that of its rows stay too), number (of the family, with numbered)
-- out: p0, p1, ..., w INTEGER (the weight of the row) and, if numbered, u BIGINT (the same for the rows of a family)
--      and n INTEGER (how many these are), in the order of u
WITH kept AS (
{{ rows }}
),
{% if classes %}
classes AS (
    SELECT
        parent,
{% for column in classes %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM kept
    GROUP BY
        parent
),
{% endif %}
{% if repeated %}
counted AS (
    SELECT
{% for column in repeated %}
        {{ column }},
{% endfor %}
        *
    FROM kept
),
{% endif %}
family AS (
    SELECT
{% for column in shared %}
        {{ column }},
{% endfor %}
{% for column in before %}
        {{ column }},
{% endfor %}
{% if numbered %}
        {{ number }} AS u,
{% endif %}
        *
    FROM {% if repeated %}counted{% else %}kept{% endif %}

{% if classes %}
    JOIN classes USING (parent)
{% endif %}
{% if shared or before %}
    WINDOW
        family_rows AS (PARTITION BY parent){% if before %},
        family_order AS (
            PARTITION BY
                parent
            ORDER BY
{% for column in order %}
                {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
        ){% endif %}

{% endif %}
)
SELECT
{% for column in packed %}
    {{ column }}{% if numbered or weighted or not loop.last %},{% endif %}

{% endfor %}
{% if numbered %}
    CAST(u AS BIGINT) AS u,
    n{% if weighted %},{% endif %}

{% endif %}
{% if weighted %}
    w
{% endif %}
FROM family
{% if numbered %}
ORDER BY
    u
{% endif %}
