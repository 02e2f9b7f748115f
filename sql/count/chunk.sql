-- Consecutive rows of codes, to be counted outside of the database (private side).
-- in:  table (codes kept in DuckDB), columns (its code columns), start, stop (places; stop is not included)
-- out: one row per place: the codes
SELECT
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ table }}
WHERE rowid >= {{ start }}
AND rowid < {{ stop }}
