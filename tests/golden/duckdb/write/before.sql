SELECT
    l."row",
    any_value(s.a0) FILTER (WHERE s."row" = l."row" - 1) AS a0,
    any_value(s.a1) FILTER (WHERE s."row" = l."row" - 1) AS a1,
    arg_max(s.a1, s."row") FILTER (WHERE s.a1 < 5) AS code,
    arg_max(s.t, s."row") FILTER (WHERE s.a1 < 5) AS tick
FROM (
    SELECT
        "row",
        unnest(range(begin, "row")) AS earlier
    FROM listed
) AS l
INNER JOIN staged AS s
    ON s."row" = l.earlier
GROUP BY l."row"
ORDER BY l."row"
