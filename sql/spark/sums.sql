-- What a task returns: the sums of its counts (private side).
-- in:  table (of counts), keys (their names)
-- out: tally INTEGER, the keys, n BIGINT
SELECT
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
