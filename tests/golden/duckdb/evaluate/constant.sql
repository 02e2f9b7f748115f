WITH units AS (
    SELECT
        part,
        min(h0) = max(h0) AS same0,
        min(h1) = max(h1) AS same1
    FROM families
    WHERE n > 1
    GROUP BY
        part,
        unit
)
SELECT
    part,
    count(*) AS several,
    count(*) FILTER (WHERE same0) AS s0,
    count(*) FILTER (WHERE same1) AS s1
FROM units
GROUP BY part
