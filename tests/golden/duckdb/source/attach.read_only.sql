ATTACH 'it''s.duckdb' AS "a""b" (TYPE duckdb, READ_ONLY)
