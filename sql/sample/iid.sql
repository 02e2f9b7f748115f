-- Rows drawn independently of each other: of 32 random bits the first say which slot of the parents'
-- configuration is looked at, and the others whether its own value is drawn or its alias.
-- in:  started (query of rows with the lists of all nodes beside them), steps (by node: name, source, parent,
--      slot_bits, columns (names of its lists: thresholds, own, aliases), value_bits, words), last (name of the last
--      step), codes (<expression> AS a<i>)
-- out: a query with the columns row, a0, a1, ...
WITH started AS (
{{ started }}
)
{%- for step in steps %}
,
{{ step.name }}_bits AS (
    SELECT
        *,
        CAST(hash(xor("row", {{ step.value_bits }})) >> 32 AS UINTEGER) AS bits,
        CAST(({{ step.parent }} << {{ step.slot_bits }}) | (bits >> {{ 32 - step.slot_bits }}) AS BIGINT) + 1 AS slot
    FROM {{ step.source }}
),
{{ step.name }} AS (
    SELECT
{% for word in step.words %}
        {{ word }},
{% endfor %}
{% for later in steps[loop.index:] %}
{% for column in later.columns %}
        {{ column }},
{% endfor %}
{% endfor %}
        "row"
    FROM (
        SELECT
            *,
            CASE
                WHEN (bits & {{ 2 ** (32 - step.slot_bits) - 1 }}) < {{ step.columns[0] }}[slot] THEN {{ step.columns[1] }}[slot]
                ELSE {{ step.columns[2] }}[slot]
            END AS value
        FROM {{ step.name }}_bits
    ) AS d
)
{%- endfor %}

SELECT
    CAST("row" AS BIGINT) AS "row",
{% for code in codes %}
    {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ last }}
