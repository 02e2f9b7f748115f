(
    SELECT * EXCLUDE (file_row_number)
    FROM read_parquet(
        'a',
        hive_partitioning = FALSE,
        filename = FALSE,
        file_row_number = TRUE
    )
    WHERE file_row_number >= 0
    AND file_row_number < 7
)
