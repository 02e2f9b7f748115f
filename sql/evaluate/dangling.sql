-- Whether a foreign key names a row that is there.
-- in:  table (of codes), target (table or subquery with the key), sided (1: it has sides too | 0),
--      ties (pairs own, key: equal columns of table and target)
-- out: one row per side: rows, missing (with a NULL in the key), broken (without a row that it names); BIGINT
SELECT
    side,
    count(*) AS rows,
    count(*) FILTER (WHERE {% for tie in ties %}own.{{ tie.own }} IS NULL{% if not loop.last %} OR {% endif %}{% endfor %}) AS missing,
    count(*) FILTER (
        WHERE {% for tie in ties %}own.{{ tie.own }} IS NOT NULL
            AND {% endfor %}NOT EXISTS (
                SELECT 1
                FROM {{ target }} AS named
                WHERE {% if sided %}named.side = own.side
                    AND {% endif %}{% for tie in ties %}named.{{ tie.key }} = own.{{ tie.own }}{% if not loop.last %} AND {% endif %}{% endfor %}

            )
    ) AS broken
FROM {{ table }} AS own
GROUP BY side
