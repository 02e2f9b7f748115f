-- One-way counts of several attributes in one scan of the source.
-- A code is never NULL, so the one code that is not NULL tells which attribute a row counts.
-- in:  relation (what stands after FROM),
--      named (raw columns under neutral names: <column> AS c<i>),
--      keys (of named values that make up a place in a hierarchy: <expression> AS c<i>; often none),
--      columns (for each attribute: its position, a name for the code, the expression that encodes the value)
-- out: one row per attribute and code that occurs: attribute INTEGER, code BIGINT, n BIGINT
WITH named AS (
    SELECT
{% for column in named %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {{ relation }}
),
{% if keys %}
keyed AS (
    SELECT
        *,
{% for column in keys %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM named
),
{% endif %}
coded AS (
    SELECT
{% for column in columns %}
        {{ column.expression }} AS {{ column.code }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {% if keys %}keyed{% else %}named{% endif %}

)
SELECT
    CASE
{% for column in columns %}
        WHEN {{ column.code }} IS NOT NULL THEN {{ column.attribute }}
{% endfor %}
    END AS attribute,
    CASE
{% for column in columns %}
        WHEN {{ column.code }} IS NOT NULL THEN CAST({{ column.code }} AS BIGINT)
{% endfor %}
    END AS code,
    CAST(count(*) AS BIGINT) AS n
FROM coded
GROUP BY GROUPING SETS (
{% for column in columns %}
    ({{ column.code }}){% if not loop.last %},{% endif %}

{% endfor %}
)
