-- Rows of the child that has most, for each node and each part it can be split by (private side).
-- in:  keyed (the table of keys),
--      nodes (the table of nodes: place BIGINT, shape INTEGER for nodes of the same levels, n0, ...),
--      shapes (number, and per hierarchy: at, the id of a key's node, and node, that of the table's; below, for
--      each part that can be refined: its number and at, the id of a key's node one level below)
-- out: place BIGINT, part INTEGER, n BIGINT
{% for shape in shapes if shape.below %}
{% set outer = loop %}
{% for part in shape.below %}
SELECT
    place,
    CAST({{ part.number }} AS INTEGER) AS part,
    max(n) AS n
FROM (
    SELECT
        nodes.place AS place,
        CAST(sum(keyed.n) AS BIGINT) AS n
    FROM {{ keyed }} AS keyed
    INNER JOIN {{ nodes }} AS nodes
        ON nodes.shape = {{ shape.number }}
{% for id in shape.ids %}
        AND {{ id.at }} = {{ id.node }}
{% endfor %}
    WHERE keyed.state = 0
    GROUP BY
        nodes.place,
        {{ part.at }}
) AS children
GROUP BY
    place
{% if not (outer.last and loop.last) %}
UNION ALL
{% endif %}
{% endfor %}
{% endfor %}
