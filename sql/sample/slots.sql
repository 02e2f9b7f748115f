-- The alias table of one node: every configuration of the parents has 2^slot_bits slots of an equal capacity. A
-- slot gives its own value below the threshold, and its alias from there on. Walker's method (1977), as Vose
-- (1991) fills the slots: those of too little are filled up from those of too much in turn, one line of slots
-- over all configurations, because the capacity is the mean of each. What is filled and what is taken are sums
-- up to a slot, hence no loop (the sweep of Huebschle-Schneider and Sanders 2019). A slot that filled others is
-- at last no more than full, and the next one of too much fills it up. Exact.
-- in:  number (of the node), lines (to stand after FROM: parent, value, low, high), slot_bits, configurations
-- out: a query with the columns node, position (of parent and slot), threshold, value (NULL for a slot without
--      one), alias
WITH lines AS MATERIALIZED (
    SELECT
        parent,
        (parent << {{ slot_bits }}) + row_number() OVER (PARTITION BY parent ORDER BY low) - 1 AS position,
        value,
        CAST(high AS BIGINT) - low + 1 AS units
    FROM {{ lines }}
),
occurring AS (
    SELECT
        parent,
        count(*) AS lines
    FROM lines
    GROUP BY parent
),
slots AS (
    SELECT
        position,
        value,
        units
    FROM lines
    UNION ALL
    SELECT
        unnest(range((parent << {{ slot_bits }}) + lines, (parent + 1) << {{ slot_bits }})),
        NULL,
        0
    FROM occurring
    UNION ALL
    SELECT
        unnest(range(r.range << {{ slot_bits }}, (r.range + 1) << {{ slot_bits }})),
        NULL,
        {{ 2 ** (32 - slot_bits) }}
    FROM range({{ configurations }}) AS r
    ANTI JOIN occurring AS o
        ON o.parent = r.range
),
summed AS MATERIALIZED (
    SELECT
        *,
        CAST(sum(greatest(0, {{ 2 ** (32 - slot_bits) }} - units)) OVER upto AS BIGINT) AS lacked,
        CAST(sum(greatest(0, units - {{ 2 ** (32 - slot_bits) }})) OVER upto AS BIGINT) AS exceeded
    FROM slots
    WINDOW upto AS (ORDER BY position ROWS UNBOUNDED PRECEDING)
),
little AS (
    SELECT *
    FROM summed
    WHERE units < {{ 2 ** (32 - slot_bits) }}
),
much AS (
    SELECT
        *,
        exceeded - (units - {{ 2 ** (32 - slot_bits) }}) AS taken,
        lead(value) OVER (ORDER BY position) AS next
    FROM summed
    WHERE units > {{ 2 ** (32 - slot_bits) }}
)
SELECT
    {{ number }} AS node,
    position,
    units AS threshold,
    value,
    value AS alias
FROM summed
WHERE units = {{ 2 ** (32 - slot_bits) }}
UNION ALL
SELECT
    {{ number }},
    l.position,
    l.units,
    l.value,
    m.value
FROM little AS l
ASOF JOIN much AS m
    ON m.taken <= l.lacked - ({{ 2 ** (32 - slot_bits) }} - l.units)
UNION ALL
SELECT
    {{ number }},
    m.position,
    {{ 2 ** (32 - slot_bits) }} + m.exceeded - l.lacked,
    m.value,
    CASE WHEN m.exceeded < l.lacked THEN m.next ELSE m.value END
FROM much AS m
ASOF JOIN little AS l
    ON m.exceeded <= l.lacked
