-- The staged rows in their order.
-- in:  staged
-- out: the same rows
SELECT *
FROM {{ staged }}
ORDER BY "row"
