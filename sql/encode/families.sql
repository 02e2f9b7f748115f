-- Rows of units with what the rows of one unit decide together, and their weights (private side).
-- in:  kept (a query: the rows that are kept, with their unit and the codes p0, p1, ... and, if rows have an order,
--      o: the moment of a row, with which equal rows are equal),
--      codes (the names p<i>, o if there is one last),
--      ordered (whether there is o),
--      repeated (of a row among those of its unit: <expression> AS <name>; often none),
--      shared (aggregates over all rows of a unit: <expression> AS <name>, where unit_rows is the window),
--      classes (of a unit, aggregates of all its rows: <expression> AS z<i>; often none),
--      before (of the row before: <expression> AS <name>, where unit_order is the window; none without an order),
--      packed (mixed-radix codes: <expression> AS p<i>), weight (of all rows of a unit together),
--      numbered (whether the number of the unit and of its rows are kept too)
-- out: p0, p1, ..., w BIGINT (the weight of the row) and, if numbered, u BIGINT (the same for all rows of a unit)
--      and n BIGINT (its rows), in the order of u
WITH kept AS (
{{ kept }}
),
{% if classes %}
classes AS (
    SELECT
        unit,
{% for column in classes %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM kept
    GROUP BY
        unit
),
{% endif %}
{% if repeated %}
counted AS (
    SELECT
        *,
{% for column in repeated %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM kept
),
{% endif %}
family AS (
    SELECT
        *,
{% for column in shared %}
        {{ column }},
{% endfor %}
{% for column in before %}
        {{ column }},
{% endfor %}
{% if numbered %}
        dense_rank() OVER (ORDER BY unit) AS u,
{% endif %}
        count(*) OVER unit_rows AS n
    FROM {% if repeated %}counted{% else %}kept{% endif %}

{% if classes %}
    JOIN classes USING (unit)
{% endif %}
    WINDOW
        unit_rows AS (PARTITION BY unit){% if ordered %},
        -- Rows that tie are equal: their order makes no difference.
        unit_order AS (
            PARTITION BY
                unit
            ORDER BY
                o,
{% for code in codes %}
                {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
        ){% endif %}

)
SELECT
{% for column in packed %}
    {{ column }},
{% endfor %}
{% if numbered %}
    CAST(u AS BIGINT) AS u,
    CAST(n AS BIGINT) AS n,
{% endif %}
    CAST({{ weight }} // n AS BIGINT) AS w
FROM family
{% if numbered %}
ORDER BY
    u
{% endif %}
