-- Rows whose counts stay close to what is expected, as one query: the same rows that shuffle, outcomes
-- and draw make chunk by chunk. A rank is looked up in the cumulative distribution by an ASOF join.
-- in:  nrows (expression), chunk_bits (a chunk has 2^chunk_bits rows), words (names), steps (by variable:
--      name, source, parent, fixed, rank_bits, jitter_bits, relation (parent, value, low, high), words), codes (<expression> AS a<i>), last (name of the last step)
-- out: the columns row, a0, a1, ...
WITH started AS (
    SELECT
{% for word in words %}
        CAST(0 AS UBIGINT) AS {{ word }},
{% endfor %}
        range AS "row"
    FROM range({{ nrows }})
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
            ORDER BY hash(xor(CAST("row" AS UBIGINT), {{ step.rank_bits }}))
        ) - 1 AS rank,
        count(*) OVER (PARTITION BY "group") AS size
    FROM {{ step.name }}_grouped
),
{{ step.name }}_placed AS (
    SELECT
        *,
        ((rank << 32) + CAST(hash(xor(CAST("group" AS UBIGINT), {{ step.jitter_bits }})) & 4294967295 AS BIGINT)) // size AS place
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
    "row",
{% for code in codes %}
    {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ last }}
