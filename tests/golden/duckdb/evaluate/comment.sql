SELECT coalesce(comment, '') AS comment
FROM duckdb_tables()
WHERE database_name = 'm'
    AND schema_name = 's'
    AND table_name = 'it''s {{ x }}'
