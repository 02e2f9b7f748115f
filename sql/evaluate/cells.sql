-- Counts of the cells of one marginal in each table; cells without rows are absent.
-- in:  table (of codes), columns (its code columns to group by)
-- out: one row per cell that occurs: the codes, real, synthetic, holdout BIGINT
SELECT
{% for column in columns %}
    {{ column }},
{% endfor %}
    count(*) FILTER (WHERE side = 0) AS real,
    count(*) FILTER (WHERE side = 1) AS synthetic,
    count(*) FILTER (WHERE side = 2) AS holdout
FROM {{ table }}
GROUP BY
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
