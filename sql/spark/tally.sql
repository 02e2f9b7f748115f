-- The sums of one tally over all parts (private side).
-- in:  table (of sums), number (of the tally), keys (under their own names and types)
-- out: the keys, n BIGINT
SELECT
{% for key in keys %}
    {{ key }},
{% endfor %}
    n
FROM {{ table }}
WHERE tally = {{ number }}
