SELECT
    place,
    CAST(0 AS INTEGER) AS part,
    max(n) AS n
FROM (
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
        nodes.place,
        (keyed.k0 >> 2)
) AS children
GROUP BY
    place
UNION ALL
SELECT
    place,
    CAST(1 AS INTEGER) AS part,
    max(n) AS n
FROM (
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
        nodes.place,
        encode(substr(decode(keyed.k1), 1, 1))
) AS children
GROUP BY
    place
UNION ALL
SELECT
    place,
    CAST(0 AS INTEGER) AS part,
    max(n) AS n
FROM (
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
        nodes.place,
        (keyed.k0 >> 0)
) AS children
GROUP BY
    place
UNION ALL
SELECT
    place,
    CAST(1 AS INTEGER) AS part,
    max(n) AS n
FROM (
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
        nodes.place,
        encode(substr(decode(keyed.k1), 1, 2))
) AS children
GROUP BY
    place
