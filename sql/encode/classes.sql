-- The classes of the rows that each kept row of the parent has in a child table; of none too (private side).
-- in:  parent (the kept rows of the parent), rows (a query: the rows of the child table, parent the place of the
--      parent's row), classes (aggregates of the rows of one parent: <expression> AS z<i>, from columns of child and up)
-- out: r BIGINT (the place of the parent's row), z0, z1, ... (codes)
SELECT
    up.rowid AS r,
{% for column in classes %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ parent }} AS up
LEFT JOIN (
{{ rows }}
) AS child
    ON child.parent = up.rowid
GROUP BY
    up.rowid,
    up.h
