SELECT
    CAST(hash(tally, i0, b0) % 8 AS INTEGER) AS bucket,
    tally,
    i0,
    b0,
    CAST(sum(n) AS BIGINT) AS n
FROM staged
GROUP BY
    i0,
    b0,
    tally
ORDER BY bucket
