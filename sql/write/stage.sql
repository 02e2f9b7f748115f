-- Table that receives sampled codes (public side).
-- in:  table, columns (<name> <smallest unsigned type>)
-- out: empty temporary table with the columns row, a0, a1, ...
CREATE TEMP TABLE {{ table }} (
    "row" BIGINT,
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
)
