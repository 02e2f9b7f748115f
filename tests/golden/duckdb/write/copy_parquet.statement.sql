COPY (
SELECT 1 AS a
) TO 'it''s' (FORMAT parquet, COMPRESSION zstd, KV_METADATA {dpsyn_sql: 'it''s {{ x }}'})
