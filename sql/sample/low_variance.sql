-- Rows whose counts stay close to what is expected. The rows of one parent configuration get ranks in a random
-- order of the node's own; rank plus jitter, over their number, is looked up among the stretches.
-- in:  started (query), chunk_bits (a chunk has 2^chunk_bits rows), steps (by node: name, source, parent,
--      slot_bits, relation (key, low, high, value), rank_bits, jitter_bits, words), last (name of the last
--      step), codes (<expression> AS a<i>)
-- out: a query with the columns row, a0, a1, ...
WITH started AS (
{{ started }}
)
{%- for step in steps %}
,
{{ step.name }}_grouped AS (
    SELECT
        *,
        {{ step.parent }} + (("row" >> {{ chunk_bits }}) << 40) AS "group"
    FROM {{ step.source }}
),
{{ step.name }}_ranked AS MATERIALIZED (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY "group"
            ORDER BY hash(xor("row", {{ step.rank_bits }}))
        ) - 1 AS rank,
        count(*) OVER (PARTITION BY "group") AS size
    FROM {{ step.name }}_grouped
),
{{ step.name }}_placed AS (
    SELECT
        *,
        CAST(((rank << 32) + CAST(hash(xor("group", {{ step.jitter_bits }})) >> 32 AS BIGINT)) // size AS UINTEGER)
            AS place
    FROM {{ step.name }}_ranked
),
{{ step.name }} AS (
    SELECT
{% for word in step.words %}
        {{ word }},
{% endfor %}
        "row"
    FROM {{ step.name }}_placed AS r
    INNER JOIN {{ step.relation }} AS d
        ON d.key = (("group" & 1099511627775) << {{ step.slot_bits }}) | (r.place >> {{ 32 - step.slot_bits }})
        AND d.low <= r.place
        AND d.high >= r.place
)
{%- endfor %}

SELECT
    CAST("row" AS BIGINT) AS "row",
{% for code in codes %}
    {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ last }}
