-- Whether a key names one row each.
-- in:  table (of codes), keys (its columns)
-- out: one row per side: rows, missing (with a NULL in the key), broken (rows beyond the first of a key); BIGINT
WITH counted AS (
    SELECT
        side{% for key in keys %},
        {{ key }}
{%- endfor %},
        count(*) AS c
    FROM {{ table }}
    GROUP BY ALL
)
SELECT
    side,
    CAST(sum(c) AS BIGINT) AS rows,
    CAST(coalesce(sum(c) FILTER (WHERE {% for key in keys %}{{ key }} IS NULL{% if not loop.last %} OR {% endif %}{% endfor %}), 0) AS BIGINT) AS missing,
    CAST(coalesce(sum(c - 1) FILTER (WHERE {% for key in keys %}{{ key }} IS NOT NULL{% if not loop.last %} AND {% endif %}{% endfor %}), 0) AS BIGINT) AS broken
FROM counted
GROUP BY side
