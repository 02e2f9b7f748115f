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
HAVING
    (tally != 0 OR sum(n) >= 5) AND
    (tally != 2 OR sum(n) >= 9)
