-- The rows of a table that belong to a unit, each with the codes of the rows above it.
-- in:  table, codes (its table of codes), parents (the same of its parent, or roots.sql), once (1: a key of parents
--      may stand twice, of which the first row counts | 0), keys (of parents), ties (pairs own, key: columns of codes
--      and of parents that are equal), above (codes of parents that are kept), columns (of codes that are kept)
-- out: a temporary table: part, side, id, unit (id of the root's row), parent (id), the columns
CREATE TEMP TABLE {{ table }} AS
SELECT
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
