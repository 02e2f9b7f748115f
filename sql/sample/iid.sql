-- Rows drawn independently of each other. Of 64 random bits the upper half chooses a slot of the alias
-- table of the parents' values, the lower half which of the slot's two values it is.
-- in:  start and stop (row numbers, expressions), words (names), steps (by variable: name, source, parent,
--      slot_bits, slots, relation (key, cut, value, alias), words), codes (<expression> AS a<i>), last (name of
--      the last step)
-- out: the columns row, a0, a1, ...
WITH started AS (
    SELECT
{% for word in words %}
        CAST(0 AS UBIGINT) AS {{ word }},
{% endfor %}
        range AS "row"
    FROM range({{ start }}, {{ stop }})
)
{%- for step in steps %}
,
{{ step.name }}_bits AS (
    SELECT
        *,
        {{ step.parent }} AS parent,
        hash(xor(CAST("row" AS UBIGINT), {{ step.slot_bits }})) AS bits
    FROM {{ step.source }}
),
{{ step.name }}_drawn AS (
    SELECT
        b.*,
        CASE WHEN CAST(b.bits & 4294967295 AS BIGINT) < t.cut THEN t.value ELSE t.alias END AS value
    FROM {{ step.name }}_bits AS b
    INNER JOIN {{ step.relation }} AS t
        ON t.key = b.parent * {{ step.slots }} + CAST(((b.bits >> 32) * {{ step.slots }}) >> 32 AS BIGINT)
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
    "row",
{% for code in codes %}
    {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ last }}
