-- The codes that a task returns (private side).
-- in:  query (of the codes), columns (expressions with their names)
-- out: the columns
SELECT
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM (
{{ query }}
) AS made
