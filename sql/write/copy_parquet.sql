-- Write to a Parquet file.
-- in:  path (string literal), query (the decoded rows), statement (literal of one piece: what a reader of the
--      file alone should know, under the key dpsyn_sql; or none)
-- out: the file
COPY (
{{ query }}
) TO {{ path }} (FORMAT parquet, COMPRESSION zstd{% if statement %}, KV_METADATA {dpsyn_sql: {{ statement }}}{% endif %})
