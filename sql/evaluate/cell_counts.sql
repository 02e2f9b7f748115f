-- How many cells of one marginal have the same counts: enough for every distance, and far fewer rows than cells.
-- in:  table (of codes), columns (its code columns to group by)
-- out: real, synthetic, holdout, cells BIGINT; the order is by counts
WITH cells AS (
    SELECT
        count(*) FILTER (WHERE side = 0) AS real,
        count(*) FILTER (WHERE side = 1) AS synthetic,
        count(*) FILTER (WHERE side = 2) AS holdout
    FROM {{ table }}
    GROUP BY
{% for column in columns %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
)
SELECT
    real,
    synthetic,
    holdout,
    count(*) AS cells
FROM cells
GROUP BY
    real,
    synthetic,
    holdout
ORDER BY
    real,
    synthetic,
    holdout
