SELECT *
FROM (
SELECT 1 AS a
)
CROSS JOIN lists AS step0_lists
