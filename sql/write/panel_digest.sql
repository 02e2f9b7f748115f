-- What the rows of a period are, in any order; another row, or a changed one, gives another digest.
-- in:  rows (what stands after FROM: the rows of the period)
-- out: one row: rows BIGINT, digest VARCHAR
SELECT
    count(*) AS rows,
    coalesce(md5(string_agg(told, '' ORDER BY told)), '') AS digest
FROM (
    SELECT md5(CAST(written AS VARCHAR)) AS told
    FROM {{ rows }} AS written
)
