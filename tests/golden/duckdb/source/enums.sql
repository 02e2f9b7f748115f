SELECT
    labels
FROM duckdb_types()
WHERE logical_type = 'ENUM'
    AND NOT internal
    AND labels IS NOT NULL
