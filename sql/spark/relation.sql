-- The driver's stand-in for the rows of a source: expressions are checked on it.
-- in:  table, columns (names with their types)
-- out: empty table
CREATE TABLE {{ table }} (
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
)
