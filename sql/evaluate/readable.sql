-- How many rows a relation has, and how many of its values are read and cannot be read as the common type.
-- in:  relation (what stands after FROM), columns (raw: the value, read: the same as the common type)
-- out: rows, and for each column g<i> (values given) and u<i> (values that cannot be read), all BIGINT
SELECT
    count(*) AS rows
{% for column in columns %}
    , count({{ column.raw }}) AS g{{ loop.index0 }}
    , count({{ column.raw }}) FILTER (WHERE {{ column.read }} IS NULL) AS u{{ loop.index0 }}
{% endfor %}
FROM {{ relation }}
