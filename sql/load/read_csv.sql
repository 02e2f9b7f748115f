{#- A CSV file that a release wrote, to put after FROM: quoted empty text is text, an empty field is NULL.
    in:  path (text literal; wildcards in it escaped), columns ('name': 'type' pairs joined by commas),
         compression (text literal)
    out: the columns of the release
#}
read_csv(
    {{ path }},
    auto_detect = FALSE,
    header = TRUE,
    columns = {
    {{ columns }}
    },
    delim = ',',
    quote = '"',
    escape = '"',
    nullstr = '',
    allow_quoted_nulls = FALSE,
    compression = {{ compression }},
    parallel = FALSE
)
