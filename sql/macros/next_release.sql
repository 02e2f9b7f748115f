-- The number of a new release, and how many releases of its name there are already.
-- in:  schema, name (literal in lower case: names that differ in ASCII case are one), whole (the same, of a release of several
--      tables; empty for none)
-- out: number, earlier
SELECT
    CAST(COALESCE(max(release), 0) + 1 AS BIGINT) AS number,
    count(*) FILTER (WHERE
        translate(name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') = {{ name }}
        OR translate(certificate ->> '$.database.name', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') = {{ whole }}
    ) AS earlier
FROM {{ schema }}.releases
