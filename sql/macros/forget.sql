-- What is kept of a release that is written again, and of all tables of a release of several.
-- in:  schema, table (name), name (literal in lower case: names that differ in ASCII case are one), whole (the same, of a release
--      of several tables; empty for none)
-- out: rows of these releases are gone
DELETE FROM {{ schema }}.{{ table }}
WHERE release IN (
    SELECT release
    FROM {{ schema }}.releases
    WHERE translate(name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') = {{ name }}
        OR translate(certificate ->> '$.database.name', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') = {{ whole }}
)
