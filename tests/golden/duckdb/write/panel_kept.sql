CREATE TEMPORARY TABLE kept AS
SELECT
    n."row",
    earlier.born AS kept0,
    earlier.sex AS kept1
FROM numbered AS n
JOIN (SELECT * FROM d.t WHERE day = 1) AS earlier
    ON encode(CAST(n.person + 1 AS VARCHAR)) = encode(CAST(earlier.who AS VARCHAR))
