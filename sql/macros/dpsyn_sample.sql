-- Rows drawn from the model of a release; the same number and seed give the same rows.
-- The casts keep anything but numbers out of the text; quotes in the name are doubled.
-- in:  database, most (rows drawn with low variance; more are drawn independently)
-- out: table macro
CREATE OR REPLACE MACRO {{ database }}.main.dpsyn_sample(release, nrows, seed := 1) AS TABLE
SELECT *
FROM query(
    'FROM dpsyn."'
    || CASE WHEN CAST(nrows AS BIGINT) > {{ most }} THEN 'iid_' ELSE 'sample_' END
    || replace(COALESCE(CAST(release AS VARCHAR), error('dpsyn_sample: name a release')), '"', '""')
    || '"('
    || COALESCE(CAST(nrows AS BIGINT), error('dpsyn_sample: say how many rows'))
    || ', '
    || COALESCE(CAST(seed AS UBIGINT), error('dpsyn_sample: the seed is NULL'))
    || ')'
)
