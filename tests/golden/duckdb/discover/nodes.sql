SELECT
    nodes.place AS place,
    CAST(sum(keyed.n) AS BIGINT) AS n
FROM keyed_rows AS keyed
INNER JOIN some_nodes AS nodes
    ON nodes.shape = 0
    AND (keyed.k0 >> 4) = nodes.n0
    AND encode(substr(decode(keyed.k1), 1, 0)) = encode(nodes.n1)
WHERE keyed.state = 0
GROUP BY
    nodes.place
UNION ALL
SELECT
    nodes.place AS place,
    CAST(sum(keyed.n) AS BIGINT) AS n
FROM keyed_rows AS keyed
INNER JOIN some_nodes AS nodes
    ON nodes.shape = 1
    AND (keyed.k0 >> 2) = nodes.n0
    AND encode(substr(decode(keyed.k1), 1, 1)) = encode(nodes.n1)
WHERE keyed.state = 0
GROUP BY
    nodes.place
