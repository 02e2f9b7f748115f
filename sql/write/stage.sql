-- Table that receives sampled codes (public side).
-- in:  table, columns (<name> <smallest unsigned type>)
-- out: empty temporary table with the columns row, a0, a1, ...
{{ dialect.create_temporary }} {{ table }} (
    "row" BIGINT,
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
)
