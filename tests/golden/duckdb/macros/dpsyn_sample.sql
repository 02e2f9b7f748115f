CREATE OR REPLACE MACRO "d".main.dpsyn_sample(release, nrows, seed := 1) AS TABLE
SELECT *
FROM query(
    'FROM dpsyn."'
    || CASE WHEN CAST(nrows AS BIGINT) > 5 THEN 'iid_' ELSE 'sample_' END
    || CASE
        WHEN list_contains(
            [
                'a',
                'it''s'
            ],
            translate(CAST(release AS VARCHAR), 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')
        )
            THEN replace(CAST(release AS VARCHAR), '"', '""')
        ELSE error(
            'dpsyn_sample: there is no release '
            || COALESCE('''' || replace(CAST(release AS VARCHAR), '''', '''''') || '''', 'NULL')
            || ' here; there are '
            || '''a'', ''it''''s'''
        )
    END
    || '"('
    || COALESCE(CAST(nrows AS BIGINT), error('dpsyn_sample: say how many rows'))
    || ', '
    || COALESCE(CAST(seed AS UBIGINT), error('dpsyn_sample: the seed is NULL'))
    || ')'
)
