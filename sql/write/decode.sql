-- Synthetic rows as values, with the source's column names, order and types.
-- Rows are ordered while they are still narrow codes, so that files are the same byte for byte.
-- in:  staged (table with the columns row, a0, a1, ...), columns (<expression> AS <column name>)
-- out: one row a staged row, in the order of row
WITH ordered AS (
    SELECT *
    FROM {{ staged }}
    ORDER BY "row"
)
SELECT
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM ordered
