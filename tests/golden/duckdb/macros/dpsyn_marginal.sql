CREATE OR REPLACE MACRO "d".main.dpsyn_marginal(release, attributes) AS TABLE
SELECT *
FROM query(
    'SELECT '
    || array_to_string(
        list_transform(
            range(1, 1 + len(CAST(attributes AS VARCHAR[]))),
            lambda i: 'labels[' || i || '] AS "' || replace(CAST(attributes AS VARCHAR[])[i], '"', '""') || '", '
        ),
        ''
    )
    || 'estimate, noisy, standard_error, basis FROM dpsyn.marginal('''
    || replace(CAST(release AS VARCHAR), '''', '''''')
    || ''', ['
    || array_to_string(
        list_transform(
            CAST(attributes AS VARCHAR[]),
            lambda name: '''' || replace(name, '''', '''''') || ''''
        ),
        ', '
    )
    || ']) ORDER BY cell'
)
