WITH everything AS (
SELECT 1 AS a
)
SELECT *
FROM everything
WHERE "row" NOT IN (
SELECT 1 AS a
)
