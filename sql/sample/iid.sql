-- Rows drawn independently of each other: 32 random bits are looked up among the stretches of the parents'
-- values, by their slot.
-- in:  started (query), steps (by node: name, source, parent, slot_bits, relation (key, low, high, value),
--      value_bits, words), last (name of the last step), codes (<expression> AS a<i>)
-- out: a query with the columns row, a0, a1, ...
WITH started AS (
{{ started }}
)
{%- for step in steps %}
,
{{ step.name }}_bits AS (
    SELECT
        *,
        CAST(hash(xor("row", {{ step.value_bits }})) >> 32 AS UINTEGER) AS bits
    FROM {{ step.source }}
),
{{ step.name }} AS (
    SELECT
{% for word in step.words %}
        {{ word }},
{% endfor %}
        "row"
    FROM {{ step.name }}_bits AS b
    INNER JOIN {{ step.relation }} AS d
        ON d.key = ({{ step.parent }} << {{ step.slot_bits }}) | (b.bits >> {{ 32 - step.slot_bits }})
        AND d.low <= b.bits
        AND d.high >= b.bits
)
{%- endfor %}

SELECT
    CAST("row" AS BIGINT) AS "row",
{% for code in codes %}
    {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ last }}
