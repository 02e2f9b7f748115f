-- The number of a new release.
-- in:  schema
-- out: number
SELECT CAST(COALESCE(max(release), 0) + 1 AS BIGINT) AS number
FROM {{ schema }}.releases
