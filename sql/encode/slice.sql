{#- The rows of a slice, to put after FROM. No CTE: its name could stand for a table of the relation.
    in:  relation (what stands after FROM), columns (their names),
         inside (a total function of one row: whether it is in the slice),
         bound (none: every row of the slice; else a row counts only in the first windows of its unit: most,
         unit (whose row it is, as bytes), number (the number of the window of a row),
         before (whether a row is in a window up to the last of the slice),
         and names that no column has: its_unit, its_number, a_unit, a_number, place)
    out: the same columns
#}
(
    SELECT
{% for column in columns %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
{% if bound %}
    FROM (
        SELECT
{% for column in columns %}
            {{ column }},
{% endfor %}
            {{ bound.unit }} AS {{ bound.its_unit }},
            {{ bound.number }} AS {{ bound.its_number }}
        FROM {{ relation }}
        WHERE {{ inside }}
    ) AS inside
    INNER JOIN (
        SELECT
            {{ bound.a_unit }},
            {{ bound.a_number }},
            row_number() OVER (
                PARTITION BY
                    {{ bound.a_unit }}
                ORDER BY
                    {{ bound.a_number }}
            ) AS {{ bound.place }}
        FROM (
            SELECT DISTINCT
                {{ bound.unit }} AS {{ bound.a_unit }},
                {{ bound.number }} AS {{ bound.a_number }}
            FROM {{ relation }}
            WHERE {{ bound.before }}
        ) AS met
        WHERE {{ bound.a_unit }} IS NOT NULL
    ) AS placed
        ON {{ bound.its_unit }} = {{ bound.a_unit }}
        AND {{ bound.its_number }} = {{ bound.a_number }}
    WHERE {{ bound.place }} <= {{ bound.most }}
{% else %}
    FROM {{ relation }}
    WHERE {{ inside }}
{% endif %}
)
