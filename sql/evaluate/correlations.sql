-- Pearson's correlations of pairs of numbers of one table, over rows that have both.
-- in:  relation (what stands after FROM), numbers (standardised: <expression> AS z<i>), pairs (first, second:
--      names of numbers)
-- out: one row: r<i> for each pair, NULL or NaN where a column is constant
WITH numbers AS (
    SELECT
{% for number in numbers %}
        {{ number }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {{ relation }}
)
SELECT
{% for pair in pairs %}
    corr({{ pair.first }}, {{ pair.second }}) AS r{{ loop.index0 }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM numbers
