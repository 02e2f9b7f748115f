SELECT
    part,
    number,
    count(*) AS rows,
    CAST(sum(children) AS BIGINT) AS children
FROM children
GROUP BY
    part,
    number
