-- Rows whose counts stay close to what is expected, as one query: the same rows that shuffle, outcomes
-- and draw make chunk by chunk. A rank is looked up in the cumulative distribution by an ASOF join.
-- in:  started (query), chunk_bits (a chunk has 2^chunk_bits rows), steps (by variable: name, source, parent,
--      fixed, rank_bits, jitter_bits, relation (parent, value, low), words), last (name of the last
--      step), codes (<expression> AS a<i>)
-- out: a query with the columns row, a0, a1, ...
WITH started AS (
{{ started }}
)
{%- for step in steps %}
{% if step.fixed %}
,
{{ step.name }} AS (
    SELECT
{% for word in step.words %}
        {{ word }},
{% endfor %}
        "row"
    FROM {{ step.source }}
    INNER JOIN {{ step.relation }} AS d
        ON d.parent = {{ step.parent }}
)
{%- else %}
,
{{ step.name }}_grouped AS (
    SELECT
        *,
        {{ step.parent }} AS parent,
        {{ step.parent }} + (("row" >> {{ chunk_bits }}) << 40) AS "group"
    FROM {{ step.source }}
),
{{ step.name }}_ranked AS (
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
        ((rank << 32) + CAST(hash(xor("group", {{ step.jitter_bits }})) & 4294967295 AS BIGINT)) // size AS place
    FROM {{ step.name }}_ranked
),
{{ step.name }} AS (
    SELECT
{% for word in step.words %}
        {{ word }},
{% endfor %}
        "row"
    FROM {{ step.name }}_placed AS r
    ASOF INNER JOIN {{ step.relation }} AS d
        ON d.parent = r.parent
        AND d.low <= r.place
)
{%- endif %}
{%- endfor %}

SELECT
    CAST("row" AS BIGINT) AS "row",
{% for code in codes %}
    {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ last }}
