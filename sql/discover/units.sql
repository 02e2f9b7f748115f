-- Distinct units per thing (a key, a code of a grid, or a cell), at most so many things of one unit.
-- in:  relation (what stands after FROM), value (the raw column, text already read as its type),
--      thing (a total function of one value, as an expression of c; NULL: the row has none),
--      joins (what the thing needs beside c; each keeps every row exactly once),
--      spelled (a thing as a key of the result, as an expression of thing; other things, other keys),
--      unit (whose row it is, as bytes; none: every row is its own unit),
--      bound (max_rows: things kept of one unit; key of the draw among them)
-- out: one row per thing: thing, n BIGINT (units)
WITH named AS (
    SELECT
{% if unit %}
        {{ unit }} AS unit,
{% endif %}
        {{ value }} AS c
    FROM {{ relation }}
),
told AS (
    SELECT
{% if unit %}
        unit,
{% endif %}
        {{ thing }} AS thing
    FROM named
{% for join in joins %}
    {{ join }}
{% endfor %}
){% if unit %},
-- A thing counts once for a unit, however many rows say it.
pairs AS (
    SELECT DISTINCT
        unit,
        thing
    FROM told
    WHERE unit IS NOT NULL
    AND thing IS NOT NULL
),
-- The key passes through the unit, else one order of things would hold in all units; and through a hash
-- of its own on the outside, because the last argument of hash() is only xored in.
drawn AS (
    SELECT
        unit,
        thing,
        {{ lot(["thing"], "unit", bound.key) }} AS lot
    FROM pairs
),
-- No two pairs of a unit tie in lot and thing: those kept depend on nothing but the unit's own.
ranked AS (
    SELECT
        thing,
        row_number() OVER (
            PARTITION BY
                unit
            ORDER BY
                lot,
                thing
        ) AS place
    FROM drawn
){% endif %}

SELECT
    {{ spelled }} AS thing,
    CAST(count(*) AS BIGINT) AS n
{% if unit %}
FROM ranked
WHERE place <= {{ bound.max_rows }}
GROUP BY
    ranked.thing
{% else %}
FROM told
WHERE told.thing IS NOT NULL
GROUP BY
    told.thing
{% endif %}
