-- The distributions of one node, to stand after FROM.
-- in:  table, node (number)
-- out: a subquery with the columns of table
(
    SELECT *
    FROM {{ table }}
    WHERE node = {{ node }}
)
