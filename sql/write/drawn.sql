-- Codes of staged rows.
-- in:  staged (table with the columns row, a0, a1, ..., as s), condition (on s: which rows; none: all), columns (names
--      of columns of codes), ordered (0 or 1: by the number of the row)
-- out: one row a staged row that meets the condition: the columns
SELECT
{% for column in columns %}
    s.{{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ staged }} AS s
{% if condition %}
WHERE {{ condition }}
{% endif %}
{% if ordered %}
ORDER BY s."row"
{% endif %}
