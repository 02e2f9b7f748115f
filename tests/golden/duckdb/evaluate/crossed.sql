SELECT
    part,
    k0_0 AS first,
    k1_2 AS second,
    count(*) AS rows
FROM linked_1
GROUP BY ALL
