-- The schema tree of a Parquet file as its footer states it: true names, in file order, depth first.
-- in:  path (text literal)
-- out: name, children (number of children; NULL or 0 for a leaf)
SELECT
    name,
    coalesce(num_children, 0) AS children
FROM parquet_schema({{ path }})
