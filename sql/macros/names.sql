-- The names of all releases of a database.
-- in:  schema
-- out: name, the first release first
SELECT name
FROM {{ schema }}.releases
ORDER BY
    created,
    name
