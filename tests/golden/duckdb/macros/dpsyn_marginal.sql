CREATE OR REPLACE MACRO "d".main.dpsyn_marginal(release, attributes) AS TABLE
SELECT *
FROM query(
    'SELECT '
    || array_to_string(
        list_transform(
            range(1, 1 + len(COALESCE(CAST(attributes AS VARCHAR[]), []))),
            lambda i: 'labels[' || i || '] AS "' || COALESCE(replace(CAST(attributes AS VARCHAR[])[i], '"', '""'), 'NULL') || '", '
        ),
        ''
    )
    || 'round(estimate, 1) AS estimate, round(estimate_error, 1) AS estimate_error, round(noisy, 1) AS noisy, '
    || 'round(standard_error, 1) AS standard_error, basis FROM dpsyn.marginal('
    || COALESCE('''' || replace(CAST(release AS VARCHAR), '''', '''''') || '''', 'NULL')
    || ', ['
    || array_to_string(
        list_transform(
            COALESCE(CAST(attributes AS VARCHAR[]), []),
            lambda name: COALESCE('''' || replace(name, '''', '''''') || '''', 'NULL')
        ),
        ', '
    )
    || ']) ORDER BY cell'
)
