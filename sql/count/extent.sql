-- How many rows of codes there are, and the place of the last one.
-- in:  table (codes kept in DuckDB)
-- out: n BIGINT, last BIGINT (-1 without rows)
SELECT
    CAST(count(*) AS BIGINT) AS n,
    CAST(COALESCE(max(rowid), -1) AS BIGINT) AS last
FROM {{ table }}
