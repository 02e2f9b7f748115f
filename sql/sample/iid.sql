-- Rows drawn independently of each other. The lowest of 64 random bits choose a slot of the alias table of the
-- parents' values; as a number below 2^64 they decide which of the slot's two values it is.
-- in:  started (query), steps (by variable: name, source, parent, slot_bits, slots, relation (key, cut,
--      value, alias), words), last (name of the last step), codes (<expression> AS a<i>)
-- out: a query with the columns row, a0, a1, ...
WITH started AS (
{{ started }}
)
{%- for step in steps %}
,
{{ step.name }}_bits AS (
    SELECT
        *,
        hash(xor("row", {{ step.slot_bits }})) AS bits
    FROM {{ step.source }}
),
{{ step.name }}_drawn AS (
    SELECT
        b.*,
        CASE WHEN b.bits < t.cut THEN t.value ELSE t.alias END AS value
    FROM {{ step.name }}_bits AS b
    INNER JOIN {{ step.relation }} AS t
        ON t.key = {{ step.parent }} | (b.bits & {{ step.slots - 1 }})
),
{{ step.name }} AS (
    SELECT
{% for word in step.words %}
        {{ word }},
{% endfor %}
        "row"
    FROM {{ step.name }}_drawn
)
{%- endfor %}

SELECT
    CAST("row" AS BIGINT) AS "row",
{% for code in codes %}
    {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ last }}
