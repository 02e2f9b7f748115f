-- What stands for the rows of a release whose model cannot be sampled by SQL: its columns, so that names and
-- types are found, and an error instead of rows. The error is in WHERE: an output column that nobody reads, as
-- under count(*), is not computed, and the query would give one row.
-- in:  columns (NULL of its type AS <column name>), message (literal)
-- out: a query that fails with the message
SELECT
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
WHERE error({{ message }}) IS NULL
