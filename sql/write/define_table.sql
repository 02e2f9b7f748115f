-- A table with the constraints of its keys. Tables that it refers to are there.
-- in:  table (qualified name), definitions (of columns and constraints)
-- out: the empty table
CREATE TABLE {{ table }} (
{% for definition in definitions %}
    {{ definition }}{% if not loop.last %},{% endif %}

{% endfor %}
)
