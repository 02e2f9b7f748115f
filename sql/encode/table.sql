-- The kept rows of a table of a tree, each with the numbers and classes of the rows below it and with what stands
-- above it (private side). No join drops or doubles a row: each is with one row at most.
-- in:  kept (the kept rows), parent (the place of the parent's row, in a row called own),
--      columns (<expression> AS p<i> of own, number<i>, classes<i> and up),
--      order (the columns of own that rows of one parent are ordered by; often none),
--      numbers (of each child table whose number of rows is used: its kept rows, and its number),
--      classes (of each child table whose classes are used: their table, and its number),
--      above (a query like this of the parent; none: nothing above is used)
-- out: r BIGINT (the place of the row), parent BIGINT (the same for rows of one parent), n INTEGER (how many these are),
--      w INTEGER (the weight of the row), the columns and the order
SELECT
    own.rowid AS r,
    {{ parent }} AS parent,
{% for column in columns %}
    {{ column }},
{% endfor %}
{% for column in order %}
    own.{{ column }} AS {{ column }},
{% endfor %}
    own.n AS n,
    own.w AS w
FROM {{ kept }} AS own
{% for child in numbers %}
LEFT JOIN (
    SELECT
        parent,
        count(*) AS n
    FROM {{ child.table }}
    GROUP BY
        parent
) AS number{{ child.number }}
    ON number{{ child.number }}.parent = own.rowid
{% endfor %}
{% for child in classes %}
JOIN {{ child.table }} AS classes{{ child.number }}
    ON classes{{ child.number }}.r = own.rowid
{% endfor %}
{% if above %}
JOIN (
{{ above }}
) AS up
    ON up.r = own.parent
{% endif %}
