-- Can the expression be computed from columns of these types? Bound, over no row.
-- in:  columns (<expression> AS <column name>), value (SQL expression)
-- out: nothing
SELECT
    {{ value }} AS bound
FROM (
    SELECT
{% for column in columns %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
)
WHERE FALSE
