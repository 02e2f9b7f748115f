{#- The rows of a registered data frame, or of another relation, under given names and types, to put after FROM.
    in:  columns (expressions with their names), frame (what stands after FROM)
    out: the columns
#}
(
SELECT
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ frame }}
)
