-- How often each value of one column occurs in each table; of ordered values also how many rows have at most
-- the value, and the next value. The number infinity stands for all that is not finite.
-- in:  table, sides (number: 0 real, 1 synthetic, 2 holdout; value: an expression; relation: after FROM),
--      ordered (1: numbers | 0: text)
-- out: a temporary table: value (NULL for missing ones), real, synthetic, holdout BIGINT, and if ordered
--      real_to, synthetic_to BIGINT (among the finite values), next
CREATE TEMP TABLE {{ table }} AS
WITH valued AS (
{% for side in sides %}
    SELECT
        {{ side.number }} AS side,
        {{ side.value }} AS value
    FROM {{ side.relation }}
{% if not loop.last %}
    UNION ALL
{% endif %}
{% endfor %}
),
counted AS (
    SELECT
        value,
        count(*) FILTER (WHERE side = 0) AS real,
        count(*) FILTER (WHERE side = 1) AS synthetic,
        count(*) FILTER (WHERE side = 2) AS holdout
    FROM valued
    GROUP BY value
)
{% if ordered %}
SELECT
    *,
    CAST(sum(real) OVER upward AS BIGINT) AS real_to,
    CAST(sum(synthetic) OVER upward AS BIGINT) AS synthetic_to,
    lead(value) OVER (ORDER BY value) AS next
FROM counted
WHERE isfinite(value)
WINDOW upward AS (ORDER BY value ROWS UNBOUNDED PRECEDING)
UNION ALL
SELECT
    *,
    NULL,
    NULL,
    NULL
FROM counted
WHERE value IS NULL
    OR NOT isfinite(value)
{% else %}
SELECT *
FROM counted
{% endif %}
