SELECT
    name,
    coalesce(num_children, 0) AS children
FROM parquet_schema('x')
