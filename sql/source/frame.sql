{#- The rows of a registered data frame under their own names and types, to put after FROM.
    in:  columns (expressions with their names), frame (qualified name)
    out: the columns
#}
(
SELECT
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ frame }}
)
