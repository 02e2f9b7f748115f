-- The rows of one table of a tree that belong to a unit, each with the codes of the rows above it.
-- in:  table, codes (table of codes: side, id, keys, perhaps a moment), part (an expression of the keys; of the
--      root alone), columns (of the table of codes that are kept), and of any other table: parents (a table made
--      here), once (1: a key of it may stand twice, of which the first row counts), ties (pairs own, key: columns of
--      codes and of parents that are equal), keys (of parents), above (codes of parents that are kept); of the root
--      keys (that are not NULL)
-- out: a temporary table: part, side, id, unit (id of the root's row), parent (id, of the root NULL), the columns
{{ dialect.create_temporary }} {{ table }} AS
SELECT
{% if parents %}
    above.part,
    own.side,
    own.id,
    above.unit,
    above.id AS parent{% for column in above %},
    above.{{ column }}
{%- endfor %}
{%- for column in columns %},
    own.{{ column }}
{%- endfor %}

FROM {{ codes }} AS own
JOIN {% if once %}(
    SELECT *
    FROM {{ parents }}
    QUALIFY row_number() OVER (
        PARTITION BY
            side{% for key in keys %},
            {{ key }}
{%- endfor %}

        ORDER BY id
    ) = 1
){% else %}{{ parents }}{% endif %} AS above
    ON own.side = above.side
{% for tie in ties %}
    AND own.{{ tie.own }} = above.{{ tie.key }}
{% endfor %}
{% else %}
    {{ part }} AS part,
    side,
    id,
    id AS unit,
    CAST(NULL AS BIGINT) AS parent{% for column in columns %},
    {{ column }}
{%- endfor %}

FROM {{ codes }}
WHERE {% for key in keys %}{{ key }} IS NOT NULL{% if not loop.last %}
    AND {% endif %}{% endfor %}

{% endif %}
