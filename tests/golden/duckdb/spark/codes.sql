SELECT
    p0 AS c0
FROM (
SELECT 1 AS a
) AS made
