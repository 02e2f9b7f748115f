WITH lines AS MATERIALIZED (
    SELECT
        parent,
        (parent << 2) + row_number() OVER (PARTITION BY parent ORDER BY low) - 1 AS position,
        value,
        CAST(high AS BIGINT) - low + 1 AS units
    FROM lines
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
        unnest(range((parent << 2) + lines, (parent + 1) << 2)),
        NULL,
        0
    FROM occurring
    UNION ALL
    SELECT
        unnest(range(r.range << 2, (r.range + 1) << 2)),
        NULL,
        1073741824
    FROM range(3) AS r
    ANTI JOIN occurring AS o
        ON o.parent = r.range
),
summed AS MATERIALIZED (
    SELECT
        *,
        CAST(sum(greatest(0, 1073741824 - units)) OVER upto AS BIGINT) AS lacked,
        CAST(sum(greatest(0, units - 1073741824)) OVER upto AS BIGINT) AS exceeded
    FROM slots
    WINDOW upto AS (ORDER BY position ROWS UNBOUNDED PRECEDING)
),
little AS (
    SELECT *
    FROM summed
    WHERE units < 1073741824
),
much AS (
    SELECT
        *,
        exceeded - (units - 1073741824) AS taken,
        lead(value) OVER (ORDER BY position) AS next
    FROM summed
    WHERE units > 1073741824
)
SELECT
    1 AS node,
    position,
    units AS threshold,
    value,
    value AS alias
FROM summed
WHERE units = 1073741824
UNION ALL
SELECT
    1,
    l.position,
    l.units,
    l.value,
    m.value
FROM little AS l
ASOF JOIN much AS m
    ON m.taken <= l.lacked - (1073741824 - l.units)
UNION ALL
SELECT
    1,
    m.position,
    1073741824 + m.exceeded - l.lacked,
    m.value,
    CASE WHEN m.exceeded < l.lacked THEN m.next ELSE m.value END
FROM much AS m
ASOF JOIN little AS l
    ON m.exceeded <= l.lacked
