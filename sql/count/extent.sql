-- How many rows of codes there are, and the places of the first and the last one.
-- in:  table (codes kept in DuckDB, or a table of the source)
-- out: n BIGINT, first BIGINT (0 without rows), last BIGINT (-1 without rows)
SELECT
    CAST(count(*) AS BIGINT) AS n,
    CAST(COALESCE(min(rowid), 0) AS BIGINT) AS first,
    CAST(COALESCE(max(rowid), -1) AS BIGINT) AS last
FROM {{ table }}
