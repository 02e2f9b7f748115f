-- One-way counts of several attributes in one scan of the source.
-- A code is never NULL, so the one column that is not NULL tells which attribute a row counts.
-- in:  relation, columns (each: name, expression that encodes the raw column, attribute index)
-- out: one row per attribute and code that occurs: attribute INTEGER, code BIGINT, n BIGINT
WITH encoded AS (
    SELECT
{% for column in columns %}
        {{ column.expression }} AS {{ column.name }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {{ relation }}
)
SELECT
    CASE
{% for column in columns %}
        WHEN {{ column.name }} IS NOT NULL THEN {{ column.attribute }}
{% endfor %}
    END AS attribute,
    CASE
{% for column in columns %}
        WHEN {{ column.name }} IS NOT NULL THEN CAST({{ column.name }} AS BIGINT)
{% endfor %}
    END AS code,
    CAST(count(*) AS BIGINT) AS n
FROM encoded
GROUP BY GROUPING SETS (
{% for column in columns %}
    ({{ column.name }}){% if not loop.last %},{% endif %}

{% endfor %}
)
