-- A table that receives rows of a public table: their numbers, and values as text.
-- in:  table (qualified name), row (name of the column of numbers), columns (quoted names)
-- out: empty temporary table
CREATE TEMP TABLE {{ table }} (
    {{ row }} BIGINT,
{% for column in columns %}
    {{ column }} VARCHAR{% if not loop.last %},{% endif %}

{% endfor %}
)
