-- Rows drawn from the model of a release; the same number and seed give the same rows.
-- The casts keep anything but numbers out of the text; quotes in the name are doubled. The names of the releases
-- are written here because query() takes no subquery; the macro is made anew with every release.
-- in:  database, most (rows drawn with low variance; more are drawn independently), names (literals in lower
--      case), known (literal: the names as SQL writes them)
-- out: table macro
CREATE OR REPLACE MACRO {{ database }}.main.dpsyn_sample(release, nrows, seed := 1) AS TABLE
SELECT *
FROM query(
    'FROM dpsyn."'
    || CASE WHEN CAST(nrows AS BIGINT) > {{ most }} THEN 'iid_' ELSE 'sample_' END
    || CASE
        WHEN list_contains(
            [
{% for name in names %}
                {{ name }}{% if not loop.last %},{% endif %}

{% endfor %}
            ],
            translate(CAST(release AS VARCHAR), 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')
        )
            THEN replace(CAST(release AS VARCHAR), '"', '""')
        ELSE error(
            'dpsyn_sample: there is no release '
            || COALESCE('''' || replace(CAST(release AS VARCHAR), '''', '''''') || '''', 'NULL')
            || ' here; there are '
            || {{ known }}
        )
    END
    || '"('
    || COALESCE(CAST(nrows AS BIGINT), error('dpsyn_sample: say how many rows'))
    || ', '
    || COALESCE(CAST(seed AS UBIGINT), error('dpsyn_sample: the seed is NULL'))
    || ')'
)
