-- The names and numbers of all releases of a database.
-- in:  schema
-- out: name, release; the first release first
SELECT
    name,
    release
FROM {{ schema }}.releases
ORDER BY
    created,
    name
