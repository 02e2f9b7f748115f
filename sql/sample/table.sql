-- Table that receives the distributions of a network (public side), one row a line of a distribution.
-- in:  table, columns (names)
-- out: empty temporary table of BIGINT columns
CREATE TEMP TABLE {{ table }} (
{% for column in columns %}
    {{ column }} BIGINT{% if not loop.last %},{% endif %}

{% endfor %}
)
