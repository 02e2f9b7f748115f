-- What a task returns: the sums of its counts (private side).
-- in:  table (of counts), keys (their names), buckets (parts that all counts are dealt to; none: this task has all
--      counts of its keys), least (conditions on the sums)
-- out: bucket INTEGER if there are buckets, in its order; tally INTEGER, the keys, n BIGINT
SELECT
{% if buckets is not none %}
    CAST(hash(tally{% for key in keys %}, {{ key }}{% endfor %}) % {{ buckets }} AS INTEGER) AS bucket,
{% endif %}
    tally,
{% for key in keys %}
    {{ key }},
{% endfor %}
    CAST(sum(n) AS BIGINT) AS n
FROM {{ table }}
GROUP BY
{% for key in keys %}
    {{ key }},
{% endfor %}
    tally
{% if least %}
HAVING
{% for one in least %}
    {{ one }}{% if not loop.last %} AND{% endif %}

{% endfor %}
{% endif %}
{% if buckets is not none %}
ORDER BY bucket
{% endif %}
