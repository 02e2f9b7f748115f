-- Named ENUM types: the only ones whose labels somebody has made public.
-- in:  nothing
-- out: labels, one list per type
SELECT
    labels
FROM duckdb_types()
WHERE logical_type = 'ENUM'
    AND NOT internal
    AND labels IS NOT NULL
