-- Rows with the alias tables of nodes beside them.
-- in:  rows (query), steps (by node: name, lists (to stand after FROM))
-- out: a query with the columns of rows, and those of the lists
SELECT *
FROM (
{{ rows }}
)
{%- for step in steps %}

CROSS JOIN {{ step.lists }} AS {{ step.name }}_lists
{%- endfor %}

