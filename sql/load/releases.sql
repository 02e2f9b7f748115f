-- The releases that a database keeps.
-- in:  schema
-- out: one row a release: release (its number), release_id, name, total, certificate; the first release first
SELECT
    release,
    release_id,
    name,
    total,
    CAST(certificate AS VARCHAR) AS certificate
FROM {{ schema }}.releases
ORDER BY
    created,
    name
