SELECT
    side,
    CASE
        WHEN k1 IS NOT NULL THEN 1
        WHEN k2 IS NOT NULL THEN 2
    END AS attribute,
    count(z0) AS n0,
    coalesce(sum(z0), 0) AS s0,
    coalesce(sum(z0 * z0), 0) AS q0,
    count(z3) AS n1,
    coalesce(sum(z3), 0) AS s1,
    coalesce(sum(z3 * z3), 0) AS q1
FROM src
GROUP BY GROUPING SETS (
    (side, k1),
    (side, k2)
)
