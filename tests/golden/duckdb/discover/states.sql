SELECT
    state,
    CAST(sum(n) AS BIGINT) AS n
FROM keyed_rows
WHERE state > 0
GROUP BY
    state
