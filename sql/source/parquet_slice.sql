{#- Rows of one Parquet file, to put after FROM: from place start to before stop; other row groups are skipped.
    in:  path (a text literal; wildcards in it escaped), start, stop
    out: the columns of the file
#}
(
    SELECT * EXCLUDE (file_row_number)
    FROM read_parquet(
        {{ path }},
        hive_partitioning = FALSE,
        filename = FALSE,
        file_row_number = TRUE
    )
    WHERE file_row_number >= {{ start }}
    AND file_row_number < {{ stop }}
)
