CREATE TEMP TABLE children AS
WITH counted AS (
    SELECT
        parent,
        count(*) AS children
    FROM linked_2
    GROUP BY parent
)
SELECT
    above.part,
    coalesce(counted.children, 0) AS children,
    CAST(
        CASE
            WHEN coalesce(counted.children, 0) <= 16 THEN coalesce(counted.children, 0)
            ELSE 16 + ceil(log2(counted.children / 16))
        END AS INTEGER
    ) AS number,
    above.k0_0,
    above.k0_1
FROM linked_1 AS above
LEFT JOIN counted
    ON above.id = counted.parent
