-- The certificate of a release, one row a fact. Facts that a version of the package does not know by name come
-- under their own names, after the others.
-- in:  database, found (the release of the name wanted_release)
-- out: table macro
CREATE OR REPLACE MACRO {{ database }}.main.dpsyn_certificate(wanted_release) AS TABLE
WITH found AS (
{{ found }}
),
words AS (
    SELECT *
    FROM (
        VALUES
        (101, '$.release', 'release', 'id'),
        (102, '$.debited_at', 'release', 'debited at'),
        (103, '$.method', 'release', 'method'),
        (201, '$.guarantee.epsilon', 'guarantee', 'epsilon'),
        (202, '$.guarantee.delta', 'guarantee', 'delta'),
        (203, '$.guarantee.definition', 'guarantee', 'definition'),
        (204, '$.guarantee.privacy_unit', 'guarantee', 'privacy unit'),
        (205, '$.guarantee.rows_per_unit', 'guarantee', 'rows per unit, at most'),
        (206, '$.guarantee.neighbours', 'guarantee', 'neighbours'),
        (207, '$.guarantee.accounting', 'guarantee', 'accounting'),
        (208, '$.guarantee.rho', 'guarantee', 'rho, or mu^2/2'),
        (209, '$.guarantee.bounds.gdp', 'guarantee', 'epsilon by exact Gaussian accounting'),
        (211, '$.guarantee.bounds.pld', 'guarantee', 'epsilon by the privacy loss distribution, whose rounding is estimated'),
        (212, '$.guarantee.bounds.pure', 'guarantee', 'epsilon of a pure budget'),
        (301, '$.budget.kind', 'budget', 'kind'),
        (302, '$.budget.reserved_units_of_1e-15', 'budget', 'reserved, in units of 1e-15'),
        (303, '$.budget.used_units_of_1e-15', 'budget', 'used, in units of 1e-15'),
        (304, '$.budget.threshold_delta', 'budget', 'delta for discovered categories'),
        (481, '$.database.name', 'database', 'release of several tables'),
        (482, '$.database.table', 'database', 'table'),
        (483, '$.database.public_tables', 'database', 'public table'),
        (484, '$.database.not_protected', 'database', 'not protected'),
        (485, '$.database', 'database', 'others'),
        (501, '$.source.name', 'source', 'name'),
        (502, '$.source.kind', 'source', 'kind'),
        (601, '$.public_facts.statements', 'public facts', 'statement'),
        (602, '$.public_facts.excluded', 'public facts', 'excluded column'),
        (603, '$.public_facts.never', 'public facts', 'excluded rows'),
        (604, '$.public_facts', 'public facts', 'others'),
        (801, '$.settings', 'settings', 'others'),
        (901, '$.sampling.rows', 'sampling', 'rows'),
        (902, '$.sampling.seed', 'sampling', 'seed'),
        (903, '$.sampling.drawn', 'sampling', 'drawn'),
        (931, '$.losses.table.verdict', 'losses', 'verdict on the table'),
        (932, '$.losses.table.why', 'losses', 'why the table'),
        (933, '$.losses.dependences.verdict', 'losses', 'verdict on dependences'),
        (934, '$.losses.dependences.why', 'losses', 'why dependences'),
        (941, '$.losses.pairs.measured', 'losses', 'pairs measured'),
        (942, '$.losses.pairs.modelled', 'losses', 'pairs modelled through other columns'),
        (943, '$.losses.pairs.independent', 'losses', 'pairs left independent'),
        (944, '$.losses.pairs.seen_from', 'losses', 'part of the rows that dependence of a pair must move to be seen'),
        (945, '$.losses.warnings', 'losses', 'warning'),
        (951, '$.not_promised', 'not promised', 'limit'),
        (961, '$.versions', 'versions', 'others')
    ) AS known (place, path, section, fact)
),
leaves AS (
    SELECT
        t.id,
        replace(regexp_replace(t.fullkey, '\[\d+\]$', ''), '"', '') AS path,
        CASE
            WHEN t.type = 'NULL' OR t.json IN ('{}', '[]') THEN 'none'
            WHEN t.type = 'OBJECT'
                THEN array_to_string(
                    list_transform(
                        json_keys(t.json),
                        lambda k: replace(k, '_', ' ') || ' ' || COALESCE(t.json ->> ('$."' || k || '"'), 'none')
                    ),
                    ', '
                )
            ELSE t.json ->> '$'
        END AS value
    FROM (
        SELECT
            e.id,
            e.fullkey,
            e.path,
            e.type,
            e.value AS json
        FROM found AS f, json_tree(f.certificate) AS e
    ) AS t
    WHERE NOT regexp_matches(t.fullkey, '^\$\.(mechanisms|public_facts\.(domain|roles)|losses\.(columns|table\.harm|dependences\.harm))([.\[]|$)')
        AND NOT contains(t.path, ']')
        AND (
            t.type NOT IN ('OBJECT', 'ARRAY')
            OR t.json IN ('{}', '[]')
            OR t.fullkey LIKE '%]'
        )
),
told AS (
    SELECT
        COALESCE(w.place, g.place, 999) AS place,
        l.id,
        COALESCE(w.section, g.section, replace(split_part(l.path, '.', 2), '_', ' ')) AS section,
        COALESCE(w.fact, replace(regexp_replace(l.path, '^\$\.([^.]+\.)?', ''), '_', ' ')) AS fact,
        l.value
    FROM leaves AS l
    LEFT JOIN words AS w
        ON w.path = l.path
    LEFT JOIN words AS g
        ON g.path = '$.' || split_part(l.path, '.', 2)
),
steps AS (
    SELECT
        e.id,
        concat_ws(', column ', e.value ->> '$.step', e.value ->> '$.column') AS fact,
        e.value ->> '$.event' AS event,
        e.value AS facts
    FROM found AS f, json_each(f.certificate, '$.mechanisms') AS e
),
ranges AS (
    SELECT
        s.fact,
        s.event,
        p.key,
        min(p.id) AS place,
        COALESCE(arg_min(p.value ->> '$', TRY_CAST(p.value ->> '$' AS DOUBLE)), min(p.value ->> '$')) AS least,
        COALESCE(arg_max(p.value ->> '$', TRY_CAST(p.value ->> '$' AS DOUBLE)), max(p.value ->> '$')) AS most
    FROM steps AS s, json_each(s.facts) AS p
    WHERE p.key NOT IN ('step', 'column', 'event')
    GROUP BY
        s.fact,
        s.event,
        p.key
),
mechanisms AS (
    SELECT
        401 AS place,
        s.id,
        'mechanisms' AS section,
        s.fact,
        s.asked || ' x ' || s.event || ': ' || r.numbers AS value
    FROM (
        SELECT
            g.fact,
            g.event,
            min(g.id) AS id,
            count(*) AS asked
        FROM steps AS g
        GROUP BY
            g.fact,
            g.event
    ) AS s
    INNER JOIN (
        SELECT
            g.fact,
            g.event,
            string_agg(
                replace(g.key, '_', ' ') || ' ' || g.least || CASE WHEN g.least <> g.most THEN ' to ' || g.most ELSE '' END,
                ', '
                ORDER BY g.place, g.key
            ) AS numbers
        FROM ranges AS g
        GROUP BY
            g.fact,
            g.event
    ) AS r
        ON r.fact = s.fact
        AND r.event = s.event
),
described AS (
    SELECT
        701 AS place,
        e.id,
        'columns' AS section,
        e.value ->> '$.name' AS fact,
        (e.value ->> '$.kind')
        || ', '
        || (e.value ->> '$.codes')
        || ' codes, '
        || (e.value ->> '$.origin')
        || COALESCE(', from ' || (e.value ->> '$.source'), '') AS value
    FROM found AS f, json_each(f.certificate, '$.public_facts.domain') AS e
    UNION ALL
    SELECT
        702 AS place,
        e.id,
        'columns' AS section,
        e.value ->> '$.name' AS fact,
        CASE e.value ->> '$.role'
            WHEN 'key' THEN 'key, fresh values'
            WHEN 'unitid' THEN 'unit id, fresh values'
            WHEN 'foreignkey' THEN 'foreign key, of the row above'
            WHEN 'partofkey' THEN 'part of a key, numbers within the row above'
            WHEN 'randomkey' THEN 'key of a random row'
            WHEN 'publickey' THEN 'key of a random row of a public group'
            WHEN 'constant' THEN 'constant, ' || COALESCE(e.value ->> '$.value', 'NULL')
            WHEN 'derived' THEN 'derived, ' || (e.value ->> '$.expression')
            ELSE e.value ->> '$.role'
        END AS value
    FROM found AS f, json_each(f.certificate, '$.public_facts.roles') AS e
    UNION ALL
    SELECT
        940 AS place,
        e.id,
        'losses' AS section,
        e.value ->> '$.name' AS fact,
        concat_ws('. ', e.value ->> '$.verdict', trim(e.value ->> '$.why', '.'), e.value ->> '$.lost') AS value
    FROM found AS f, json_each(f.certificate, '$.losses.columns') AS e
    WHERE COALESCE(e.value ->> '$.why', e.value ->> '$.lost') IS NOT NULL
)
SELECT
    a.section,
    a.fact,
    a.value
FROM (
    SELECT
        100 AS place,
        0 AS id,
        'release' AS section,
        'name' AS fact,
        f.name AS value
    FROM found AS f
    UNION ALL
    FROM told
    UNION ALL
    FROM mechanisms
    UNION ALL
    FROM described
) AS a
ORDER BY
    a.place,
    a.id,
    a.fact
