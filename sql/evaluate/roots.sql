-- The rows of the table that holds the units.
-- in:  table, codes (its table of codes), part (an expression of the keys), keys (that are not NULL), columns (of the
--      table of codes that are kept)
-- out: a temporary table: part, side, id, unit (the same), parent (NULL), the columns
{{ dialect.create_temporary }} {{ table }} AS
SELECT
    {{ part }} AS part,
    side,
    id,
    id AS unit,
    CAST(NULL AS BIGINT) AS parent{% for column in columns %},
    {{ column }}
{%- endfor %}

FROM {{ codes }}
WHERE {% for key in keys %}{{ key }} IS NOT NULL{% if not loop.last %} AND {% endif %}{% endfor %}

