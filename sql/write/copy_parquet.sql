-- Write to a Parquet file.
-- in:  path (string literal), query (the decoded rows)
-- out: the file
COPY (
{{ query }}
) TO {{ path }} (FORMAT parquet, COMPRESSION zstd)
