-- The kept rows of a table of a tree that has no tables below it (private side).
-- in:  coded (a query: owner, the key of the parent's row, as bytes, and codes),
--      codes (names of codes, and of the moment if rows have an order),
--      parent (the kept rows of the parent), secret (the key of the draw),
--      most (rows that are kept of one row of the parent)
-- out: parent BIGINT (the place of the parent's row), the codes, n INTEGER (kept rows of the same parent),
--      w INTEGER (its weight)
WITH coded AS (
{{ coded }}
),
met AS MATERIALIZED (
    SELECT
        up.rowid AS parent,
{% for code in codes %}
        coded.{{ code }} AS {{ code }},
{% endfor %}
        up.w AS parent_weight
    FROM coded
    JOIN {{ parent }} AS up
        ON coded.owner = up.key
),
families AS MATERIALIZED (
    SELECT
        parent,
        count(*) AS met,
        CAST(LEAST(count(*), {{ most }}) AS INTEGER) AS kept
    FROM met
    GROUP BY
        parent
),
-- Identical rows of a parent are numbered, so that each has its own lot; which of them gets which number makes no
-- difference. Where all rows are kept there is nothing to draw.
numbered AS (
    SELECT
        met.*,
        families.kept AS kept,
        up.h AS parent_lot,
        row_number() OVER (
            PARTITION BY
                met.parent{% if codes %},{% endif %}

{% for code in codes %}
                met.{{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
        ) AS copy
    FROM met
    JOIN families
        ON met.parent = families.parent
        AND families.met > families.kept
    JOIN {{ parent }} AS up
        ON met.parent = up.rowid
),
drawn AS (
    SELECT
        *,
        {{ dialect.lot(codes + ["copy"], "parent_lot", secret) }} AS lot
    FROM numbered
),
-- Rows that tie in lot and codes are identical.
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY
                parent
            ORDER BY
                lot{% if codes %},{% endif %}

{% for code in codes %}
                {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
        ) AS place
    FROM drawn
),
bounded AS (
    SELECT
        met.*,
        families.kept AS kept
    FROM met
    JOIN families
        ON met.parent = families.parent
        AND families.met = families.kept
    UNION ALL BY NAME
    SELECT
        * EXCLUDE (parent_lot, copy, lot, place)
    FROM ranked
    WHERE place <= {{ most }}
)
SELECT
    parent,
{% for code in codes %}
    {{ code }},
{% endfor %}
    kept AS n,
    parent_weight // kept AS w
FROM bounded
