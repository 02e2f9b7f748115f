-- Rows per node, for nodes that share no row; only nodes that have rows (private side).
-- in:  keyed (the table of keys),
--      nodes (the table of nodes: place BIGINT, shape INTEGER for nodes of the same levels, n0, ...),
--      shapes (number, and per hierarchy: at, the id of a key's node, and node, that of the table's)
-- out: place BIGINT, n BIGINT
{% for shape in shapes %}
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
    nodes.place
{% if not loop.last %}
UNION ALL
{% endif %}
{% endfor %}
