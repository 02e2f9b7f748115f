-- Rows of a public table as they are.
-- in:  table (of text), row (name of the column of numbers), columns (CAST(<column> AS <type>) AS <column>)
-- out: the rows in order
SELECT
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ table }}
ORDER BY {{ row }}
