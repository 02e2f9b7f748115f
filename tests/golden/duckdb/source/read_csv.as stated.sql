read_csv(
    [
    'a'
    ],
    auto_detect = FALSE,
    header = TRUE,
    skip = 2,
    columns = {
    'x': 'VARCHAR'
    },
    delim = ';',
    quote = '''',
    escape = '\',
    comment = '',
    nullstr = ['', 'NA'],
    allow_quoted_nulls = TRUE,
    null_padding = TRUE,
    ignore_errors = TRUE,
    store_rejects = FALSE,
    strict_mode = FALSE,
    parallel = FALSE,
    compression = 'gzip',
    encoding = 'latin-1',
    normalize_names = FALSE,
    union_by_name = FALSE,
    hive_partitioning = FALSE,
    filename = FALSE
)
