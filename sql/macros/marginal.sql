-- The cells of a marginal, numbered in row-major order of the codes.
-- Names are compared as the database compares them: ASCII case aside.
-- in:  schema, found (the release of the name wanted_release)
-- out: table macro with the columns cell, labels, estimate (of the model), estimate_error (its standard error, by
--      dpsyn_sql/fit/variances.py; NULL if none is known), noisy (inverse-variance mean of all measured tables that
--      hold the attributes; of composed tables the one over exactly these), standard_error (of noisy) and basis
--      (measured, summed, grouped or modelled, by dpsyn_sql/report/fitted.py)
CREATE OR REPLACE MACRO {{ schema }}.marginal(wanted_release, attributes) AS TABLE
WITH wanted AS (
    SELECT
        unnest(CAST(attributes AS VARCHAR[])) AS name,
        generate_subscripts(CAST(attributes AS VARCHAR[]), 1) AS place
),
found AS (
{{ found }}
),
asked AS (
    SELECT
        w.place,
        a.release,
        a.attribute,
        a.size,
        a.bins,
        GREATEST(0, r.total) AS total
    FROM wanted AS w
    INNER JOIN dpsyn.attributes AS a
        ON translate(a.name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')
        = translate(w.name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')
    INNER JOIN found AS r
        ON r.release = a.release
),
axes AS (
    SELECT
        a.place,
        a.release,
        a.attribute,
        a.size,
        CAST(COALESCE((SELECT product(b.size) FROM asked AS b WHERE b.place > a.place), 1) AS BIGINT) AS stride,
        CAST(COALESCE((SELECT product(b.bins) FROM asked AS b WHERE b.place > a.place), 1) AS BIGINT) AS bin_stride
    FROM asked AS a
),
containing AS (
    SELECT
        x.release,
        x.kind,
        x.number,
        bool_and(x.original) AS original
    FROM dpsyn.axes AS x
    INNER JOIN axes AS a
        ON a.release = x.release
        AND a.attribute = x.attribute
    WHERE x.kind IN ('model', 'measurement', 'composed')
    GROUP BY
        x.release,
        x.kind,
        x.number
    HAVING count(*) = (SELECT count(*) FROM axes)
),
sized AS (
    SELECT
        c.release,
        c.kind,
        c.number,
        any_value(c.original) AS original,
        product(x.size) AS cells,
        count(*) = (SELECT count(*) FROM axes) AS exact
    FROM containing AS c
    INNER JOIN dpsyn.axes AS x
        ON x.release = c.release
        AND x.kind = c.kind
        AND x.number = c.number
    GROUP BY
        c.release,
        c.kind,
        c.number
),
chosen AS (
    SELECT
        release,
        number
    FROM sized
    WHERE kind = 'model'
    ORDER BY
        cells,
        number
    LIMIT 1
),
checked AS (
    SELECT
        CASE
            WHEN (SELECT count(*) FROM wanted) = 0
                OR (SELECT count(DISTINCT attribute) FROM axes) < (SELECT count(*) FROM wanted)
                THEN error('dpsyn_marginal: name attributes of the release, each once' || COALESCE((
                    SELECT '; it has no ' || string_agg('''' || replace(w.name, '''', '''''') || '''', ', ' ORDER BY w.place)
                    FROM wanted AS w
                    WHERE w.name IS NOT NULL AND w.place NOT IN (SELECT place FROM axes)
                ), '') || '. FROM dpsyn_domain(''' || replace(wanted_release, '''', '''''') || ''') lists them')
            WHEN NOT EXISTS (SELECT 1 FROM chosen)
                THEN error('dpsyn_marginal: the model keeps no table of these attributes; count them in the released table or in dpsyn_sample()')
            ELSE CAST((SELECT product(size) FROM axes) AS BIGINT)
        END AS cells
),
numbered AS (
    SELECT unnest(range(cells)) AS cell
    FROM checked
),
described AS (
    SELECT
        n.cell,
        list(CASE WHEN c.is_null THEN NULL ELSE c.label END ORDER BY a.place) AS labels,
        CAST(sum(c.bin * a.bin_stride) AS BIGINT) AS bins,
        product(c.within) AS within
    FROM numbered AS n
    CROSS JOIN axes AS a
    INNER JOIN dpsyn.codes AS c
        ON c.release = a.release
        AND c.attribute = a.attribute
        AND c.code = (n.cell // a.stride) % a.size
    GROUP BY n.cell
),
modelled AS (
    SELECT
        bins,
        sum(probability) AS probability
    FROM (
        SELECT
            m.cell,
            any_value(CAST(m.probability AS DOUBLE)) AS probability,
            CAST(sum((m.cell // x.stride) % x.size * a.bin_stride) AS BIGINT) AS bins
        FROM chosen AS c
        INNER JOIN dpsyn.model_cells AS m
            ON m.release = c.release
            AND m.number = c.number
        INNER JOIN dpsyn.axes AS x
            ON x.release = c.release
            AND x.kind = 'model'
            AND x.number = c.number
        INNER JOIN axes AS a
            ON a.attribute = x.attribute
        GROUP BY m.cell
    )
    GROUP BY bins
),
weighted AS (
    SELECT
        s.release,
        s.kind,
        s.number,
        (SELECT cells FROM checked) / (s.cells * m.sigma * m.sigma) AS weight
    FROM sized AS s
    INNER JOIN dpsyn.measurements AS m
        ON m.release = s.release
        AND m.measurement = s.number
    WHERE s.original
        AND (s.kind = 'measurement' OR (s.kind = 'composed' AND s.exact))
),
measured AS (
    SELECT
        cell,
        sum(weight * noisy) / (SELECT sum(weight) FROM weighted) AS noisy
    FROM (
        SELECT
            w.number,
            any_value(w.weight) AS weight,
            any_value(m.noisy) AS noisy,
            CAST(sum((m.cell // x.stride) % x.size * a.stride) AS BIGINT) AS cell
        FROM weighted AS w
        INNER JOIN dpsyn.measured_cells AS m
            ON m.release = w.release
            AND m.measurement = w.number
        INNER JOIN dpsyn.axes AS x
            ON x.release = w.release
            AND x.kind = w.kind
            AND x.number = w.number
        INNER JOIN axes AS a
            ON a.attribute = x.attribute
        GROUP BY
            w.number,
            m.cell
    )
    GROUP BY cell
),
estimated AS (
    SELECT
        d.cell,
        (SELECT max(total) FROM asked) * COALESCE(p.probability, 0) * d.within AS estimate,
        GREATEST(d.within, 1e-12) AS within
    FROM described AS d
    LEFT JOIN modelled AS p
        ON p.bins = d.bins
),
errors AS (
    SELECT
        a.place,
        1 / sqrt(v.precision) AS error
    FROM axes AS a
    INNER JOIN dpsyn.variances AS v
        ON v.release = a.release
        AND v.marginal = CAST(a.attribute AS VARCHAR)
),
components AS (
    SELECT
        v.dispersion,
        v.precision,
        (SELECT error FROM errors WHERE place = 1) AS first_error,
        (SELECT error FROM errors WHERE place = 2) AS second_error,
        (SELECT size FROM axes WHERE place = 2) AS width,
        (SELECT GREATEST(sum(estimate), 1e-300) FROM estimated) AS total
    FROM dpsyn.variances AS v
    WHERE v.release = (SELECT max(release) FROM axes)
        AND v.marginal = (SELECT string_agg(attribute, ',' ORDER BY attribute) FROM axes)
        AND (SELECT count(*) FROM errors) = (SELECT count(*) FROM axes)
        AND (SELECT count(*) FROM axes) <= 2
),
margins AS (
    SELECT
        e.cell,
        e.estimate,
        e.within,
        c.*,
        sum(e.estimate) OVER (PARTITION BY e.cell // c.width) AS first_rows,
        sum(e.estimate) OVER (PARTITION BY e.cell % c.width) AS second_rows
    FROM estimated AS e
    CROSS JOIN components AS c
),
parts AS (
    SELECT
        cell,
        within,
        dispersion,
        precision,
        first_error,
        second_error,
        estimate,
        CASE
            WHEN total > 1e-300
                THEN power(GREATEST(
                    estimate,
                    LEAST(total, first_rows + 2 * first_error, second_rows + 2 * second_error) - estimate
                ) / 1.96, 2)
        END AS most,
        (estimate + first_error * second_rows / total) / (first_rows + first_error) AS given_first,
        (estimate + second_error * first_rows / total) / (second_rows + second_error) AS given_second,
        (sqrt(first_rows * first_rows + power(0.8 * first_error, 2)) - first_rows) / 2 AS first_hidden,
        (sqrt(second_rows * second_rows + power(0.8 * second_error, 2)) - second_rows) / 2 AS second_hidden,
        (1 - first_rows / total) * (1 - second_rows / total) AS free
    FROM margins
),
unseen AS (
    SELECT
        *,
        power(first_error * given_first, 2) + power(second_error * given_second, 2) AS of_margins,
        estimate + first_hidden * given_first + second_hidden * given_second AS expected
    FROM parts
),
variance AS (
    SELECT
        cell,
        LEAST(most, CASE
            WHEN second_error IS NULL THEN first_error * first_error
            ELSE GREATEST(
                0,
                (free + dispersion * within) * expected * (1 - within)
                + (free + dispersion) * expected * within * within / (within + (free + dispersion) * expected * precision)
                + of_margins
            )
        END) AS variance
    FROM unseen
)
SELECT
    d.cell,
    d.labels,
    e.estimate,
    sqrt(v.variance) AS estimate_error,
    m.noisy,
    (SELECT sqrt(1 / sum(weight)) FROM weighted) AS standard_error,
    CASE
        WHEN (SELECT bool_or(exact) FROM sized WHERE kind <> 'model' AND original) THEN 'measured'
        WHEN EXISTS (SELECT 1 FROM weighted) THEN 'summed'
        WHEN (SELECT count(*) FROM axes) > 1
            AND (SELECT bool_or(exact OR kind = 'measurement') FROM sized WHERE kind <> 'model') THEN 'grouped'
        ELSE 'modelled'
    END AS basis
FROM described AS d
INNER JOIN estimated AS e
    ON e.cell = d.cell
LEFT JOIN variance AS v
    ON v.cell = d.cell
LEFT JOIN measured AS m
    ON m.cell = d.cell
