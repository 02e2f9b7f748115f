-- How many rows a table and a query do not share, each counted as often as it occurs.
-- in:  table (qualified name), query (the decoded rows)
-- out: one row: rows
WITH written AS MATERIALIZED (
{{ query }}
)
SELECT count(*) AS rows
FROM (
    (FROM {{ table }} EXCEPT ALL FROM written)
    UNION ALL
    (FROM written EXCEPT ALL FROM {{ table }})
)
