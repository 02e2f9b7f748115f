read_csv(
    'it''s',
    auto_detect = FALSE,
    header = TRUE,
    columns = {
    'a': 'DATE'
    },
    delim = ',',
    quote = '"',
    escape = '"',
    nullstr = '',
    allow_quoted_nulls = FALSE,
    compression = 'none',
    parallel = FALSE
)
