SELECT count(*) AS found
FROM duckdb_tables()
WHERE lower(database_name) = lower('d')
AND lower(schema_name) = lower('main')
AND lower(table_name) = lower('it''s')
AND contains(comment, '0123456789abcdef')
