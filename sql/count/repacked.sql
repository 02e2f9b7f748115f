-- The codes of an encoded source under other columns, for one GROUP BY.
-- in:  table (the encoded source), columns (mixed-radix codes of digits of its columns: <expression> AS p<i>)
-- out: one row a row of the table
SELECT
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ table }}
