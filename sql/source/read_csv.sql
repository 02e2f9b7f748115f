{#- A set of CSV files, to put after FROM: every column VARCHAR, every option stated, so that nothing is
    guessed from rows. Missing fields and empty ones are NULL; lines that are no CSV are skipped (a read
    that failed on a line would tell that the line exists). One thread: the parallel reader fails on
    padded lines beside quoted line ends.
    in:  paths (text literals joined by commas), columns ('name': 'VARCHAR' pairs joined by commas),
         delimiter, quote, escape, encoding, compression (text literals), null (text literals in brackets),
         skip (lines before the header), strict (0, or 1: a line that is no CSV is an error)
    out: the columns of the header
#}
read_csv(
    [
    {{ paths }}
    ],
    auto_detect = FALSE,
    header = TRUE,
    skip = {{ skip }},
    columns = {
    {{ columns }}
    },
    delim = {{ delimiter }},
    quote = {{ quote }},
    escape = {{ escape }},
    comment = '',
    nullstr = {{ null }},
    allow_quoted_nulls = TRUE,
{% if strict %}
    null_padding = FALSE,
    ignore_errors = FALSE,
{% else %}
    null_padding = TRUE,
    ignore_errors = TRUE,
{% endif %}
    store_rejects = FALSE,
    strict_mode = FALSE,
    parallel = FALSE,
    compression = {{ compression }},
    encoding = {{ encoding }},
    normalize_names = FALSE,
    union_by_name = FALSE,
    hive_partitioning = FALSE,
    filename = FALSE
)
