SELECT
    tally,
    i0,
    b0,
    CAST(sum(n) AS BIGINT) AS n
FROM staged
GROUP BY
    i0,
    b0,
    tally
