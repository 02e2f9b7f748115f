-- How many rows have how many children.
-- in:  table (of children.sql)
-- out: one row per part and number: rows, children BIGINT
SELECT
    part,
    number,
    count(*) AS rows,
    CAST(sum(children) AS BIGINT) AS children
FROM {{ table }}
GROUP BY
    part,
    number
