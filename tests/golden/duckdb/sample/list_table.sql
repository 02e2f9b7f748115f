CREATE TEMP TABLE made AS
SELECT *
FROM (
    SELECT
        1 AS one
) AS nothing
CROSS JOIN lists AS step0_lists
