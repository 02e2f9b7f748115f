-- Write to a CSV file with a header. Empty text is quoted, so that it differs from NULL.
-- in:  path (string literal), query (the decoded rows)
-- out: the file
COPY (
{{ query }}
) TO {{ path }} (FORMAT csv, HEADER TRUE)
