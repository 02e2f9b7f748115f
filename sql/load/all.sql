-- The synthetic rows of a release.
-- in:  rows (SQL to put after FROM)
-- out: its columns
SELECT *
FROM {{ rows }}
