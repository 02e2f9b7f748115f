CREATE TEMP TABLE temp.main.k AS
SELECT
    row_number() OVER (
        ORDER BY
            thing
    ) - 1 AS place,
    thing,
    n
FROM temp.main.g
