{#- The rows of a table with the codes of what they refer to, to put after FROM. A row refers to one public row
    at most, so that each row comes once.
    in:  relation (what stands after FROM), columns (names), references: each with name, lookup (as of
         public_rows; empty: no public table) and columns (names)
    out: the columns, and a column for each reference: BIGINT, NULL where it names nothing
#}
(
SELECT
{% for column in columns %}
    t.{{ column }},
{% endfor %}
{% for one in references %}
{% if one.lookup %}
    r{{ loop.index0 }}.code AS {{ one.name }}{% if not loop.last %},{% endif %}

{% else %}
    CASE WHEN {% for column in one.columns %}t.{{ column }} IS NOT NULL{% if not loop.last %} AND {% endif %}{% endfor %} THEN CAST(1 AS BIGINT) END AS {{ one.name }}{% if not loop.last %},{% endif %}

{% endif %}
{% endfor %}
FROM {{ relation }} AS t
{% for one in references %}
{% if one.lookup %}
{% set lookup = loop.index0 %}
LEFT JOIN {{ one.lookup }} AS r{{ lookup }}
    ON {% for column in one.columns %}encode(CAST(t.{{ column }} AS VARCHAR)) = r{{ lookup }}.k{{ loop.index0 }}{% if not loop.last %} AND {% endif %}{% endfor %}

{% endif %}
{% endfor %}
)
