CREATE TEMPORARY TABLE numbered AS
SELECT
    * REPLACE (row_number() OVER (ORDER BY "row") - 1 AS "row"),
    "row" AS drawn
FROM staged
