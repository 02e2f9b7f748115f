-- Codes of the source's rows, for the scans that follow (private side).
-- in:  relation (what stands after FROM),
--      named (raw columns under neutral names: <column> AS c<i>),
--      keys (of named values that make up a place in a hierarchy: <expression> AS c<i>; often none),
--      coded (one total function of one value each: <expression> AS k<i>),
--      lookups (LEFT JOIN with the labels of a text attribute that has many, or where its codes begin, AS l<i>),
--      packed (mixed-radix codes in the smallest unsigned type: <expression> AS p<i>),
--      codes (the names p<i>),
--      bound (max_rows kept of one unit and the key of the draw among them; none: every row is kept),
--      carried (columns that stay beside the codes: an expression and a name; with a bound unit, whose row it is, as
--      bytes), families (the unit of a row is kept too)
-- out: p0, p1, ... and what is carried, with a bound only with families; one row a row of the relation that is kept
WITH named AS (
    SELECT
{% for one in carried %}
        {{ one.expression }} AS {{ one.name }},
{% endfor %}
{% for column in named %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {{ relation }}
),
{% if keys %}
keyed AS (
    SELECT
        *,
{% for column in keys %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM named
),
{% endif %}
coded AS (
    SELECT
{% for one in carried %}
        {{ one.name }},
{% endfor %}
{% for column in coded %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {% if keys %}keyed{% else %}named{% endif %}

{% for join in lookups %}
    {{ join }}
{% endfor %}
){% if bound %},
packed AS (
    SELECT
        unit,
{% for column in packed %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM coded
    WHERE unit IS NOT NULL
),
-- Identical rows of a unit are numbered, so that each has its own lot; which of them gets which number
-- makes no difference.
numbered AS (
    SELECT
        unit,
{% for code in codes %}
        {{ code }},
{% endfor %}
        row_number() OVER (
            PARTITION BY
                unit,
{% for code in codes %}
                {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
        ) AS copy
    FROM packed
),
-- The key passes through the unit, else one order of codes would hold in all units; and through a hash
-- of its own on the outside, because the last argument of hash() is only xored in.
drawn AS (
    SELECT
        unit,
{% for code in codes %}
        {{ code }},
{% endfor %}
        {{ dialect.lot(codes + ["copy"], "unit", bound.key) }} AS lot
    FROM numbered
),
-- Rows that tie in lot and codes are identical: the rows kept depend on nothing but the unit's own.
ranked AS (
    SELECT
{% if families %}
        unit,
{% endif %}
{% for code in codes %}
        {{ code }},
{% endfor %}
        row_number() OVER (
            PARTITION BY
                unit
            ORDER BY
                lot,
{% for code in codes %}
                {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
        ) AS place
    FROM drawn
)
SELECT
{% if families %}
    unit,
{% endif %}
{% for code in codes %}
    {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM ranked
WHERE place <= {{ bound.max_rows }}
{% else %}

SELECT
{% for one in carried %}
    {{ one.name }},
{% endfor %}
{% for column in packed %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM coded
{% endif %}
