-- Times between a row and the row before, by octaves.
-- in:  table (of steps.sql)
-- out: one row per part and octave (NULL: no time at all): rows BIGINT, total DOUBLE
SELECT
    part,
    CASE WHEN since > 0 THEN CAST(floor(log2(since)) AS INTEGER) END AS octave,
    count(*) AS rows,
    sum(since) AS total
FROM {{ table }}
WHERE since IS NOT NULL
GROUP BY
    part,
    octave
