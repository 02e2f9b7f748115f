-- Rows that have no key (private side).
-- in:  keyed (the table of keys)
-- out: state INTEGER (1: outside, 2: no value), n BIGINT
SELECT
    state,
    CAST(sum(n) AS BIGINT) AS n
FROM {{ keyed }}
WHERE state > 0
GROUP BY
    state
