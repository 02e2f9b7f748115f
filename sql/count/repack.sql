-- The codes of an encoded source under other columns, for marginals that were not counted on.
-- in:  table (the encoded source),
--      digits (attributes that are used: <code> AS d<position>), carried (columns that stay as they are),
--      columns (mixed-radix codes of digits, their bins and labels: <expression> AS p<i>)
-- out: p0, p1, ...; one row a row of the encoded source
SELECT
{% for name in carried %}
    {{ name }},
{% endfor %}
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM (
    SELECT
{% for name in carried %}
        {{ name }},
{% endfor %}
{% for digit in digits %}
        {{ digit }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {{ table }}
) AS digits
