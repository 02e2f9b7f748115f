SELECT
    count(*) AS rows,
    coalesce(md5(string_agg(told, '' ORDER BY told)), '') AS digest
FROM (
    SELECT md5(CAST(written AS VARCHAR)) AS told
    FROM (SELECT * FROM d.t WHERE day = 1) AS written
)
