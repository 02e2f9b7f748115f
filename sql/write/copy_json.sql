-- Write to a JSON file, an array with an object for each row.
-- in:  path (string literal), query (the decoded rows)
-- out: the file
COPY (
{{ query }}
) TO {{ path }} (FORMAT json, ARRAY TRUE)
