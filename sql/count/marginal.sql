-- Counts of the cells of one GROUP BY over columns of codes; cells without rows are absent.
-- in:  table (the encoded source), columns (its code columns to group by), weighted (rows count their weight w)
-- out: one row per cell that occurs: the codes, n BIGINT
SELECT
{% for column in columns %}
    {{ column }},
{% endfor %}
    CAST({% if weighted %}sum(w){% else %}count(*){% endif %} AS BIGINT) AS n
FROM {{ table }}
GROUP BY
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
