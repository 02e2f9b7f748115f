read_parquet(
    [
    'a',
    'b'
    ],
    union_by_name = FALSE,
    hive_partitioning = FALSE,
    filename = FALSE
)
