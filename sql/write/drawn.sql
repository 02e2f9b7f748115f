-- Codes of staged rows.
-- in:  staged (table with the columns row, a0, a1, ..., as s), listed (table with the column row: which rows; or none:
--      all), condition (on s: which of them; or none), columns (names of columns of codes), ordered (0 or 1: by the number of the row)
-- out: one row a staged row that is listed and meets the condition: the columns
SELECT
{% for column in columns %}
    s.{{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ staged }} AS s
{% if listed %}
INNER JOIN {{ listed }} AS l
    ON l."row" = s."row"
{% endif %}
{% if condition %}
WHERE {{ condition }}
{% endif %}
{% if ordered %}
ORDER BY s."row"
{% endif %}
