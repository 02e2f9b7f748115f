SELECT
    part,
    coalesce(CAST(p0 AS SMALLINT), -1) AS previous,
    k0 AS code,
    count(*) AS rows,
    count(*) FILTER (WHERE place = most) AS lasts
FROM staged
GROUP BY
    part,
    previous,
    k0
