-- Some rows of a relation, drawn by a hash of their place. No CTE: its name could stand for a table of the relation.
-- in:  relation (what stands after FROM), columns (<expression> AS c<i>), names (c<i>), seed (literal, of the draw),
--      part (none: of all rows; else of one part of them: seed, parts, and inside: = 0 or <> 0),
--      highest (lot; more than enough rows are below it), limit
-- out: the columns, at most limit rows, in the order of their lots
SELECT
{% for name in names %}
    {{ name }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM (
    SELECT
{% for name in names %}
        {{ name }},
{% endfor %}
        place,
        hash(xor(place, hash({{ seed }}))) AS lot
    FROM (
        SELECT
{% for column in columns %}
            {{ column }},
{% endfor %}
            CAST(row_number() OVER () AS UBIGINT) AS place
        FROM {{ relation }}
    ) AS placed
{% if part %}
    WHERE hash(xor(place, hash({{ part.seed }}))) % {{ part.parts }} {{ part.inside }}
{% endif %}
) AS lotted
WHERE lot <= {{ highest }}
ORDER BY
    lot,
    place
LIMIT {{ limit }}
