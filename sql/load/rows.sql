-- What a table keeps of one release.
-- in:  schema, table, columns (identifiers), release (number)
-- out: the columns
SELECT
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ schema }}.{{ table }}
WHERE release = {{ release }}
