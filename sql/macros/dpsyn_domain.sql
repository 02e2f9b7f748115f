-- The columns of a release: measured ones in the order of their attributes, then those that are made.
-- in:  database, found (the release of the name wanted_release)
-- out: table macro
CREATE OR REPLACE MACRO {{ database }}.main.dpsyn_domain(wanted_release) AS TABLE
WITH found AS (
{{ found }}
),
labelled AS (
    SELECT
        a.name,
        list(CASE WHEN c.is_null THEN NULL ELSE c.label END ORDER BY c.code) AS labels
    FROM found AS f
    INNER JOIN dpsyn.attributes AS a
        ON a.release = f.release
    INNER JOIN dpsyn.codes AS c
        ON c.release = a.release
        AND c.attribute = a.attribute
    GROUP BY a.name
),
measured AS (
    SELECT
        e.id AS place,
        e.value AS facts
    FROM found AS f, json_each(f.certificate, '$.public_facts.domain') AS e
),
made AS (
    SELECT
        e.id AS place,
        e.value AS facts
    FROM found AS f, json_each(f.certificate, '$.public_facts.roles') AS e
),
described AS (
    SELECT
        1 AS part,
        m.place,
        (m.facts ->> '$.name') AS name,
        COALESCE((m.facts ->> '$.written'), (m.facts ->> '$.type')) AS sql_type,
        (m.facts ->> '$.kind') AS kind,
        CAST((m.facts ->> '$.codes') AS BIGINT) AS codes,
        CASE WHEN (m.facts ->> '$.kind') = 'categorical' THEN l.labels END AS labels,
        CASE WHEN (m.facts ->> '$.kind') <> 'categorical' THEN (m.facts ->> '$.edges[*]') END AS edges,
        (m.facts ->> '$.origin') AS origin,
        CAST((m.facts ->> '$.nullable') AS BOOLEAN) AS nullable,
        (m.facts ->> '$.source') AS expression
    FROM measured AS m
    LEFT JOIN labelled AS l
        ON l.name = (m.facts ->> '$.name')
    UNION ALL
    SELECT
        2 AS part,
        m.place,
        (m.facts ->> '$.name') AS name,
        (m.facts ->> '$.type') AS sql_type,
        CASE (m.facts ->> '$.role')
            WHEN 'unitid' THEN 'unit id'
            WHEN 'foreignkey' THEN 'foreign key'
            WHEN 'partofkey' THEN 'part of a key'
            WHEN 'randomkey' THEN 'random reference'
            WHEN 'publickey' THEN 'public reference'
            ELSE (m.facts ->> '$.role')
        END AS kind,
        CAST(NULL AS BIGINT) AS codes,
        CASE WHEN (m.facts ->> '$.role') = 'constant' THEN [(m.facts ->> '$.value')] END AS labels,
        CAST(NULL AS VARCHAR[]) AS edges,
        CASE WHEN (m.facts ->> '$.role') = 'key' THEN (m.facts ->> '$.origin') ELSE 'declared' END AS origin,
        CASE
            WHEN (m.facts ->> '$.role') IN ('key', 'unitid', 'foreignkey', 'partofkey') THEN FALSE
            WHEN (m.facts ->> '$.role') = 'constant' THEN (m.facts ->> '$.value') IS NULL
        END AS nullable,
        (m.facts ->> '$.expression') AS expression
    FROM made AS m
)
SELECT
    d.name,
    d.sql_type,
    d.kind,
    d.codes,
    d.labels,
    d.edges,
    d.origin,
    d.nullable,
    d.expression
FROM described AS d
ORDER BY
    d.part,
    d.place
