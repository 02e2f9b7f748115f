CREATE TEMP TABLE temp.main.distribution AS
WITH valued AS (
    SELECT
        0 AS side,
        a + 1 AS value
    FROM src
    UNION ALL
    SELECT
        1 AS side,
        a + 1 AS value
    FROM made
),
counted AS (
    SELECT
        value,
        count(*) FILTER (WHERE side = 0) AS real,
        count(*) FILTER (WHERE side = 1) AS synthetic,
        count(*) FILTER (WHERE side = 2) AS holdout
    FROM valued
    GROUP BY value
)
SELECT *
FROM counted
