-- Which values the shuffled rows get, in their order: every value's number of rows is within one of what
-- is expected given the parents. The value of rank r (from 0) of n rows is the one whose stretch of the
-- cumulative distribution holds (r + jitter) / n. All in whole numbers of 2^-32.
-- in:  shuffled (table), outcomes (table), relation (parent, value, low, high),
--      group (number of the chunk times 2^40), jitter_bits (expression)
-- out: the column value, one row a shuffled row
CREATE OR REPLACE TEMP TABLE {{ outcomes }} AS
WITH groups AS (
    SELECT
        parent,
        count(*) AS size
    FROM {{ shuffled }}
    GROUP BY parent
),
jittered AS (
    SELECT
        parent,
        size,
        4294967295 - CAST(hash(xor(parent + {{ group }}, {{ jitter_bits }})) & 4294967295 AS BIGINT) AS rest
    FROM groups
),
counted AS (
    SELECT
        d.parent,
        d.value,
        ((d.high * j.size + j.rest) >> 32) - ((d.low * j.size + j.rest) >> 32) AS number
    FROM jittered AS j
    INNER JOIN {{ relation }} AS d
        ON d.parent = j.parent
),
ordered AS (
    SELECT
        value,
        number
    FROM counted
    WHERE number > 0
    ORDER BY
        parent,
        value
)
SELECT unnest(list_resize([value], number, value)) AS value
FROM ordered
