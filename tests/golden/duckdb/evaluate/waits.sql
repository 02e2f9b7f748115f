SELECT
    part,
    CASE WHEN since > 0 THEN CAST(floor(log2(since)) AS INTEGER) END AS octave,
    count(*) AS rows,
    sum(since) AS total
FROM staged
WHERE since IS NOT NULL
GROUP BY
    part,
    octave
