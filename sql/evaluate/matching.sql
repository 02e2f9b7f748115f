-- How many rows meet each of some conditions (ten times as fast as FILTER where they are many).
-- in:  relation (what stands after FROM), conditions (of one row each)
-- out: one row: c<i> BIGINT for each condition
SELECT
{% for condition in conditions %}
    CAST(coalesce(count_if({{ condition }}), 0) AS BIGINT) AS c{{ loop.index0 }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ relation }}
