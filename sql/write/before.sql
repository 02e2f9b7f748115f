-- What came before rows in their units: the codes of the row before, and of the last row whose ordering attribute
-- is not NULL its code and its value.
-- in:  staged (table with the columns row, a0, a1, ..., t), listed (table with the columns row and begin),
--      columns (names of all codes), code (that of the ordering attribute), regular (codes that are not NULL),
--      tick (its value)
-- out: one row a listed row that is not the first of its unit, in their order: row, the codes, code and tick
--      (NULL if all before are NULL)
SELECT
    l."row",
{% for column in columns %}
    any_value(s.{{ column }}) FILTER (WHERE s."row" = l."row" - 1) AS {{ column }},
{% endfor %}
    arg_max(s.{{ code }}, s."row") FILTER (WHERE s.{{ code }} < {{ regular }}) AS code,
    arg_max(s.{{ tick }}, s."row") FILTER (WHERE s.{{ code }} < {{ regular }}) AS tick
FROM (
    SELECT
        "row",
        unnest(range(begin, "row")) AS earlier
    FROM {{ listed }}
) AS l
INNER JOIN {{ staged }} AS s
    ON s."row" = l.earlier
GROUP BY l."row"
ORDER BY l."row"
