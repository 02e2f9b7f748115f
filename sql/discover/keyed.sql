-- Rows by their keys in hierarchies, for all questions about these (private side).
-- in:  relation (what stands after FROM),
--      values (raw columns under neutral names, text already read as its type: <value> AS c<i>),
--      told (total functions of one row: <key> AS k<i>), missing (whether a row has no value),
--      keys (the names k<i>: integers or bytes, which no collation merges),
--      unit (whose row it is, as bytes; none: every row is its own unit),
--      bound (max_rows: rows kept of one unit; key of the draw among them)
-- out: k0, k1, ..., state INTEGER (0: in all hierarchies; else without keys, 1: outside, 2:
--      no value), n BIGINT (rows)
WITH named AS (
    SELECT
{% if bound %}
        {{ unit }} AS unit,
{% endif %}
{% for value in values %}
        {{ value }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {{ relation }}
),
told AS (
    SELECT
{% if bound %}
        unit,
{% endif %}
{% for key in told %}
        {{ key }},
{% endfor %}
        {{ missing }} AS missing
    FROM named
{% if bound %}
    WHERE unit IS NOT NULL
{% endif %}
),
placed AS (
    SELECT
{% if bound %}
        unit,
{% endif %}
{% for key in keys %}
        {{ key }},
{% endfor %}
        CASE
            WHEN missing THEN 2
{% for key in keys %}
            WHEN {{ key }} IS NULL THEN 1
{% endfor %}
            ELSE 0
        END AS state
    FROM told
),
settled AS (
    SELECT
{% if bound %}
        unit,
{% endif %}
{% for key in keys %}
        CASE WHEN state = 0 THEN {{ key }} END AS {{ key }},
{% endfor %}
        state
    FROM placed
){% if bound %},
-- Identical rows of a unit are numbered, so that each has its own lot; which of them gets which number
-- makes no difference.
numbered AS (
    SELECT
        unit,
{% for key in keys %}
        {{ key }},
{% endfor %}
        state,
        row_number() OVER (
            PARTITION BY
                unit,
{% for key in keys %}
                {{ key }},
{% endfor %}
                state
        ) AS copy
    FROM settled
),
-- The key passes through the unit, else one order of rows would hold in all units; and through a hash
-- of its own on the outside, because the last argument of hash() is only xored in.
drawn AS (
    SELECT
        unit,
{% for key in keys %}
        {{ key }},
{% endfor %}
        state,
        {{ lot(keys + ["state", "copy"], "unit", bound.key) }} AS lot
    FROM numbered
),
-- Rows that tie in lot, keys and state are identical: the rows kept depend on nothing but the unit's own.
ranked AS (
    SELECT
{% for key in keys %}
        {{ key }},
{% endfor %}
        state,
        row_number() OVER (
            PARTITION BY
                unit
            ORDER BY
                lot,
{% for key in keys %}
                {{ key }},
{% endfor %}
                state
        ) AS place
    FROM drawn
){% endif %}

SELECT
{% for key in keys %}
    {{ key }},
{% endfor %}
    state,
    CAST(count(*) AS BIGINT) AS n
{% if bound %}
FROM ranked
WHERE place <= {{ bound.max_rows }}
{% else %}
FROM settled
{% endif %}
GROUP BY
{% for key in keys %}
    {{ key }},
{% endfor %}
    state
