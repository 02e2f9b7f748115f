{#- A set of Parquet files, to put after FROM: the schema of the first file, nothing taken from paths.
    in:  paths (text literals joined by commas; wildcards in them escaped)
    out: the columns of the files
#}
read_parquet(
    [
    {{ paths }}
    ],
    union_by_name = FALSE,
    hive_partitioning = FALSE,
    filename = FALSE
)
