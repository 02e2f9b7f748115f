-- Whether releases of older versions of this package are there, which drew rows from a table of slots. Columns
-- are looked for, because a table of somebody else may have its name.
-- in:  database (literal)
-- out: columns (0 if there is no such table)
SELECT
    CASE
        WHEN list(column_name ORDER BY column_index)
            = ['release', 'node', 'parent', 'slot', 'value', 'low', 'high', 'threshold', 'alias']
            THEN count(*)
        ELSE 0
    END AS columns
FROM duckdb_columns()
WHERE database_name = {{ database }}
    AND schema_name = 'dpsyn'
    AND table_name = 'distributions'
