-- The rows of the table that holds the units, or the units that the rows of a table name.
-- in:  table, codes (a table of codes), part (an expression of the keys), keys (that are not NULL), once (1: the first
--      row of each key | 0: all rows), columns (of the table of codes that are kept)
-- out: a temporary table: part, side, id, unit (the same), parent (NULL), the columns
CREATE TEMP TABLE {{ table }} AS
SELECT
    {{ part }} AS part,
    side,
    id,
    id AS unit,
    CAST(NULL AS BIGINT) AS parent{% for column in columns %},
    {{ column }}
{%- endfor %}

FROM {{ codes }}
WHERE side < 2{% for key in keys %} AND {{ key }} IS NOT NULL{% endfor %}
{% if once %}

QUALIFY row_number() OVER (
    PARTITION BY
        side{% for key in keys %},
        {{ key }}
{%- endfor %}

    ORDER BY id
) = 1
{% endif %}
