-- What is kept of a release that is written again.
-- in:  schema, table (name), name (literal in lower case: names that differ in ASCII case are one)
-- out: rows of that release are gone
DELETE FROM {{ schema }}.{{ table }}
WHERE release IN (
    SELECT release
    FROM {{ schema }}.releases
    WHERE translate(name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') = {{ name }}
)
