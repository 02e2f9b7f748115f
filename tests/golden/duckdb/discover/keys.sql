CREATE TEMP TABLE temp.main.k AS
SELECT
    row_number() OVER (
        ORDER BY
            thing
    ) - 1 AS place,
    thing,
    units
FROM (
SELECT 1 AS a
) AS counted
