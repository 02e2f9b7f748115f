SELECT
    CAST(i0 AS UTINYINT) AS p0,
    n
FROM staged
WHERE tally = 1
