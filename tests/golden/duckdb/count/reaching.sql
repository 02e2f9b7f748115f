SELECT *
FROM (
SELECT 1 AS a
) AS counted
WHERE n >= 3
