SELECT
    CAST(count(*) AS BIGINT) AS n,
    CAST(COALESCE(min(rowid), 0) AS BIGINT) AS first,
    CAST(COALESCE(max(rowid), -1) AS BIGINT) AS last
FROM coded
