WITH cells AS (
    SELECT
        count(*) FILTER (WHERE side = 0) AS real,
        count(*) FILTER (WHERE side = 1) AS synthetic,
        count(*) FILTER (WHERE side = 2) AS holdout
    FROM coded
    GROUP BY
        k0,
        k1,
        k2
)
SELECT
    real,
    synthetic,
    holdout,
    count(*) AS cells
FROM cells
GROUP BY
    real,
    synthetic,
    holdout
ORDER BY
    real,
    synthetic,
    holdout
