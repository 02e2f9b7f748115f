{#- What the groups of a public table are called: the columns that make them, as text.
    in:  table (as of public_rows), columns (how many)
    out: code and label (VARCHAR), by code
#}
SELECT
    code,
    concat_ws(
        ', ',
{% for place in range(columns) %}
        COALESCE(decode(min(b{{ place }})), 'NULL'){% if not loop.last %},{% endif %}

{% endfor %}
    ) AS label
FROM {{ table }}
GROUP BY code
ORDER BY code
