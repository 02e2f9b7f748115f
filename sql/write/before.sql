-- What came before rows in their units.
-- in:  staged (table with the columns row, a0, a1, ... and t if rows are ordered), listed (table with the columns row
--      and donor, the row before), columns (names of what is wanted of the row before)
-- out: one row a listed row, in their order: row and the columns
SELECT
    l."row",
{% for column in columns %}
    s.{{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ listed }} AS l
INNER JOIN {{ staged }} AS s
    ON s."row" = l.donor
ORDER BY l."row"
