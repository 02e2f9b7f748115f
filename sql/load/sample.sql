-- Rows drawn from the model of a release.
-- in:  database, name (literal), rows, seeded (0: the seed that dpsyn_sample takes by itself), seed (literal)
-- out: rows in the columns of the release
SELECT *
FROM {{ database }}.main.dpsyn_sample({{ name }}, {{ rows }}{% if seeded %}, seed := {{ seed }}{% endif %})
