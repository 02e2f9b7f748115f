SELECT
    CASE
        WHEN list(column_name ORDER BY column_index)
            = ['release', 'node', 'parent', 'slot', 'value', 'low', 'high', 'threshold', 'alias']
            THEN count(*)
        ELSE 0
    END AS columns
FROM duckdb_columns()
WHERE database_name = 'd'
    AND schema_name = 'dpsyn'
    AND table_name = 'distributions'
