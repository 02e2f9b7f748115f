SELECT
    k0,
    k2,
    count(*) FILTER (WHERE side = 0) AS real,
    count(*) FILTER (WHERE side = 1) AS synthetic,
    count(*) FILTER (WHERE side = 2) AS holdout
FROM coded
GROUP BY
    k0,
    k2
