{#- Rows of a panel, to put after FROM: of each unit at most one row, with its codes in a period and in the period
    before. No CTE: its name could stand for a table of the relation.
    in:  now, before (queries of the rows that are kept of each period: parent, the unit; p0, p1, ...; one row a unit),
         everybody (units of either period; else those with a row in the period),
         stays, leaves, joins (codes of presence),
         columns (<expression> AS <name>, of present.p<i> and past.p<i>)
    out: unit, presence, and the columns
#}
(
    SELECT
        coalesce(present.parent, past.parent) AS unit,
        CASE
            WHEN past.parent IS NULL THEN {{ joins }}
            WHEN present.parent IS NULL THEN {{ leaves }}
            ELSE {{ stays }}
        END AS presence,
{% for column in columns %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM (
{{ now }}
    ) AS present
    {% if everybody %}FULL{% else %}LEFT{% endif %} JOIN (
{{ before }}
    ) AS past
        ON present.parent = past.parent
)
