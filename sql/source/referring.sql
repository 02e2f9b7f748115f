{#- The rows of a table with the codes of what they refer to, to put after FROM. A row refers to one public row
    at most, so that each row comes once.
    in:  relation (what stands after FROM), columns (names), references (each with name, columns and alias, and
         with lookup: a table as of public_rows, empty if no public row is named)
    out: the columns, and a column for each reference: BIGINT, NULL where it names nothing
#}
(
SELECT
{% for column in columns %}
    t.{{ column }},
{% endfor %}
{% for one in references %}
{% if one.lookup %}
    {{ one.alias }}.code AS {{ one.name }}{% if not loop.last %},{% endif %}

{% else %}
    CASE WHEN {% for column in one.columns %}t.{{ column }} IS NOT NULL{% if not loop.last %} AND {% endif %}{% endfor %} THEN CAST(1 AS BIGINT) END AS {{ one.name }}{% if not loop.last %},{% endif %}

{% endif %}
{% endfor %}
FROM {{ relation }} AS t
{% for one in references %}
{% if one.lookup %}
LEFT JOIN {{ one.lookup }} AS {{ one.alias }}
    ON {% for column in one.columns %}encode(CAST(t.{{ column }} AS VARCHAR)) = {{ one.alias }}.k{{ loop.index0 }}{% if not loop.last %} AND {% endif %}{% endfor %}

{% endif %}
{% endfor %}
)
