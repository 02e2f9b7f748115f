-- The kept rows of a table of a tree that has tables below it (private side).
-- A kept row is told by its unit and key. Lots are of keys, not of codes: rows with equal codes have other rows below.
-- in:  coded (a query: owner, the key of the parent's row, and key, the row's own, as bytes, and codes),
--      codes (names of codes, and of the moment if rows have an order),
--      parent (the kept rows of the parent), unit (the number of a unit, in a row of the parent called up),
--      secret (the key of the draw), most (rows that are kept of one row of the parent)
-- out: unit BIGINT (the same for all rows of a unit), parent BIGINT (the place of the parent's row), key, the codes,
--      h UBIGINT (the lot of the row), n INTEGER (kept rows of the same parent), w INTEGER (its weight)
WITH coded AS (
{{ coded }}
),
met AS (
    SELECT
        {{ unit }} AS unit,
        up.rowid AS parent,
        up.key AS parent_key,
        up.h AS parent_lot,
        up.w AS parent_weight,
        coded.key AS key{% if codes %},{% endif %}

{% for code in codes %}
        coded.{{ code }} AS {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM coded
    JOIN {{ parent }} AS up
        ON coded.owner = up.key
    WHERE coded.key IS NOT NULL
),
-- Of rows with one key in one unit one stays. Those that tie are equal.
single AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY
                unit,
                key
            ORDER BY
                parent_key{% if codes %},{% endif %}

{% for code in codes %}
                {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
        ) AS copy
    FROM met
),
drawn AS (
    SELECT
        *,
        {{ dialect.lot(["key"], "parent_lot", secret) }} AS h
    FROM single
    WHERE copy = 1
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY
                parent
            ORDER BY
                h,
                key
        ) AS place,
        LEAST(count(*) OVER (PARTITION BY parent), {{ most }}) AS kept
    FROM drawn
)
SELECT
    unit,
    parent,
    key,
{% for code in codes %}
    {{ code }},
{% endfor %}
    h,
    CAST(kept AS INTEGER) AS n,
    CAST(parent_weight // kept AS INTEGER) AS w
FROM ranked
WHERE place <= {{ most }}
