SELECT
    CAST(count(*) AS BIGINT) AS n,
    CAST(COALESCE(max(rowid), -1) AS BIGINT) AS last
FROM coded
