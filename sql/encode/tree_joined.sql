{#- The rows of a table of a tree with the unit that each belongs to, to put after FROM; a row of two units is there
    once for each. No CTE: its name could stand for a table of a relation.
    in:  relation (what stands after FROM), columns (their names), unit (a name that no column has),
         owner (the key of the parent's row, or of the root's own, as bytes, in a row called own),
         units (a query: its_unit and its_key, each pair once, of the parent's rows; none: the root)
    out: the columns, and the unit as bytes; no row without one
#}
(
    SELECT
{% for column in columns %}
        own.{{ column }} AS {{ column }},
{% endfor %}
{% if units %}
        up.its_unit AS {{ unit }}
    FROM {{ relation }} AS own
    JOIN (
{{ units }}
    ) AS up
        ON {{ owner }} = up.its_key
{% else %}
        {{ owner }} AS {{ unit }}
    FROM {{ relation }} AS own
    WHERE {{ owner }} IS NOT NULL
{% endif %}
)
