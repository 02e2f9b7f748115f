-- The kept rows of a table of a tree that has tables below it (private side).
-- A kept row is told by its unit and key. Lots are of keys, not of codes: rows with equal codes have other rows below.
-- in:  coded (a query: owner, the key of the parent's row, and key, the row's own, as bytes, and codes),
--      codes (names of codes, and of the moment if rows have an order),
--      parent (the kept rows of the parent), unit (the number of a unit, in a row of the parent called up),
--      secret (the key of the draw), most (rows that are kept of one row of the parent),
--      carried (whether the unit stays: a table below has tables below it)
-- out: unit BIGINT (the same for all rows of a unit; if it stays), parent BIGINT (the place of the parent's row), key, the codes,
--      h UBIGINT (the lot of the row), n INTEGER (kept rows of the same parent), w INTEGER (its weight)
WITH coded AS (
{{ coded }}
),
met AS MATERIALIZED (
    SELECT
        {{ unit }} AS unit,
        up.rowid AS parent,
        coded.key AS key,
{% for code in codes %}
        coded.{{ code }} AS {{ code }},
{% endfor %}
        {{ dialect.lot(["coded.key"], "up.h", secret) }} AS h,
        up.w AS parent_weight
    FROM coded
    JOIN {{ parent }} AS up
        ON coded.owner = up.key
    WHERE coded.key IS NOT NULL
),
repeated AS MATERIALIZED (
    SELECT
        unit,
        key
    FROM met
    GROUP BY
        unit,
        key
    HAVING count(*) > 1
),
-- Of rows with one key in one unit one stays. Those that tie are equal.
numbered AS (
    SELECT
        met.*,
        row_number() OVER (
            PARTITION BY
                met.unit,
                met.key
            ORDER BY
                up.key{% if codes %},{% endif %}

{% for code in codes %}
                met.{{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
        ) AS copy
    FROM met
    JOIN repeated
        ON met.unit = repeated.unit
        AND met.key = repeated.key
    JOIN {{ parent }} AS up
        ON met.parent = up.rowid
),
single AS MATERIALIZED (
    SELECT met.*
    FROM met
    ANTI JOIN repeated
        ON met.unit = repeated.unit
        AND met.key = repeated.key
    UNION ALL BY NAME
    SELECT * EXCLUDE (copy)
    FROM numbered
    WHERE copy = 1
),
families AS MATERIALIZED (
    SELECT
        parent,
        count(*) AS met,
        CAST(LEAST(count(*), {{ most }}) AS INTEGER) AS kept
    FROM single
    GROUP BY
        parent
),
-- Where all rows are kept there is nothing to draw.
ranked AS (
    SELECT
        single.*,
        families.kept AS kept,
        row_number() OVER (
            PARTITION BY
                single.parent
            ORDER BY
                single.h,
                single.key
        ) AS place
    FROM single
    JOIN families
        ON single.parent = families.parent
        AND families.met > families.kept
),
bounded AS (
    SELECT
        single.*,
        families.kept AS kept
    FROM single
    JOIN families
        ON single.parent = families.parent
        AND families.met = families.kept
    UNION ALL BY NAME
    SELECT * EXCLUDE (place)
    FROM ranked
    WHERE place <= {{ most }}
)
SELECT
{% if carried %}
    unit,
{% endif %}
    parent,
    key,
{% for code in codes %}
    {{ code }},
{% endfor %}
    h,
    kept AS n,
    parent_weight // kept AS w
FROM bounded
