WITH units AS (
    SELECT
        part,
        count(*) AS n,
        count(z0) = 0
            OR (count(z0) = count(*) AND min(z0) = max(z0)) AS same0,
        count(z1) = 0
            OR (count(z1) = count(*) AND min(z1) = max(z1)) AS same1
    FROM src
    WHERE side < 2
        AND unit IS NOT NULL
    GROUP BY
        part,
        unit
)
SELECT
    part,
    CAST(floor(log2(n)) AS INTEGER) AS octave,
    count(*) AS units,
    CAST(sum(n) AS BIGINT) AS rows,
    count(*) FILTER (WHERE n > 1) AS several,
    count(*) FILTER (WHERE n > 1 AND same0) AS s0,
    count(*) FILTER (WHERE n > 1 AND same1) AS s1
FROM units
GROUP BY
    part,
    octave
