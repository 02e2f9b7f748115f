-- Empty temporary table (public side).
-- in:  table, columns (<name> <type>)
-- out: the table
CREATE TEMP TABLE {{ table }} (
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
)
