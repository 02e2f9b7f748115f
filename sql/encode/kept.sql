-- The kept rows of one table of a tree of tables, in codes and with their weights (private side).
-- A family is the rows of one row of the table above; `most` of them are kept, by lot. Rows of persons lie below a root of
-- persons without columns: the key of a person stands for its row, and nothing is joined.
-- Rows that have rows below are told by their keys: those with equal codes have other rows below. Their lots are of keys.
-- in:  coded (a query: codes; owner, the key of the row above, but not of the root; key, the row's own, with below; both
--      as bytes),
--      codes (names of codes, and of the moment if rows have an order), columns (the same, or of packed codes each),
--      up (the kept rows of the table above; none: the root, and rows of persons),
--      parent (the place of the row above, or the key of a person; not of the root), weight (of the row above, or of a unit),
--      seed (of a lot: the lot of the row above, or the key of the unit),
--      below (rows have rows below; else they are leaves), unit (whose row it is; with below),
--      ties (the order of rows with one key in one unit; with below),
--      carried (whether the unit stays: a table below has tables below it),
--      secret (the key of the draw), most (rows that are kept of a family; none: the root, which keeps one of each unit)
-- out: parent (the place of the row above, BIGINT, or the key of a person; not of the root), the columns,
--      n INTEGER (kept rows of the family), w INTEGER (the weight of the row); with below key, h UBIGINT (the lot of the
--      row) and unit BIGINT (the same for all rows of a unit; if it stays)
WITH coded AS (
{{ coded }}
),
{% if below %}met AS MATERIALIZED{% else %}members AS{% endif %} (
    SELECT
{% if most is not none %}
        {{ parent }} AS parent,
{% endif %}
{% if below %}
        {{ unit }} AS unit,
        coded.key AS key,
        {{ lot(["coded.key"], seed, secret) }} AS h,
{% endif %}
{% for code in codes %}
        coded.{{ code }} AS {{ code }},
{% endfor %}
        {{ weight }} AS parent_weight
    FROM coded
{% if up %}
    JOIN {{ up }} AS up
        ON coded.owner = up.key
{% endif %}
{% if below %}
    WHERE coded.key IS NOT NULL
{% elif not up %}
    WHERE coded.owner IS NOT NULL
{% endif %}
),
{% if below %}
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
{% if ties %}
            ORDER BY
{% endif %}
{% for column in ties %}
                {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
        ) AS copy
    FROM met
    JOIN repeated
        ON met.unit = repeated.unit
        AND met.key = repeated.key
{% if up %}
    JOIN {{ up }} AS up
        ON met.parent = up.rowid
{% endif %}
),
members AS{% if most is none %} MATERIALIZED{% endif %} (
    SELECT met.*
    FROM met
    ANTI JOIN repeated
        ON met.unit = repeated.unit
        AND met.key = repeated.key
    UNION ALL BY NAME
    SELECT * EXCLUDE (copy)
    FROM numbered
    WHERE copy = 1
){% if most is not none %},{% endif %}

{% endif %}
{% if most is not none %}
counted AS MATERIALIZED (
    SELECT
        *,
        count(*) OVER (PARTITION BY parent) AS candidates
    FROM members
),
-- Where all rows are kept there is nothing to draw.
{% if not below %}
-- Identical rows of a family are numbered, so that each has its own lot; which of them gets which number makes no
-- difference.
{% endif %}
cut AS (
    SELECT
        counted.*{% if not below %},
        {{ seed }} AS seed,
        row_number() OVER (PARTITION BY counted.parent{% for code in codes %}, counted.{{ code }}{% endfor %}) AS copy{% endif %}

    FROM counted
{% if up and not below %}
    JOIN {{ up }} AS up
        ON counted.parent = up.rowid
{% endif %}
    WHERE counted.candidates > {{ most }}
),
-- The key passes through the unit, else one order of codes would hold in all units; and through a hash of its own on the
-- outside, because the last argument of hash() is only xored in. Rows that tie are equal: what is kept of a family depends
-- on nothing but its own rows.
drawn AS (
    SELECT
{% if below %}
        *,
        h AS lot
{% else %}
        * EXCLUDE (seed, copy),
        {{ lot(codes + ["copy"], "seed", secret) }} AS lot
{% endif %}
    FROM cut
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY
                parent
            ORDER BY
                lot{% if below %}, key{% else %}{% for code in codes %}, {{ code }}{% endfor %}{% endif %}

        ) AS place
    FROM drawn
),
bounded AS (
    SELECT *
    FROM counted
    WHERE candidates <= {{ most }}
    UNION ALL BY NAME
    SELECT * EXCLUDE (lot, place)
    FROM ranked
    WHERE place <= {{ most }}
)
{% endif %}
SELECT
{% if carried %}
    unit,
{% endif %}
{% if most is not none %}
    parent,
{% endif %}
{% if below %}
    key,
    h,
{% endif %}
{% for column in columns %}
    {{ column }},
{% endfor %}
{% if most is none %}
    1 AS n,
    parent_weight AS w
FROM members
{% else %}
    CAST(LEAST(candidates, {{ most }}) AS INTEGER) AS n,
    parent_weight // n AS w
FROM bounded
{% endif %}
