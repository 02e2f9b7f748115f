-- Codes of the source's rows, once, for the scans that follow (private side).
-- in:  table, relation (what stands after FROM),
--      named (raw columns under neutral names: <column> AS c<i>),
--      coded (one total function of one value each: <expression> AS k<i>),
--      lookups (LEFT JOIN with the labels of a text attribute that has many, AS l<i>),
--      packed (mixed-radix codes in the smallest unsigned type: <expression> AS p<i>)
-- out: temporary table with the columns p0, p1, ...; one row a row of the relation
CREATE TEMP TABLE {{ table }} AS
WITH named AS (
    SELECT
{% for column in named %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {{ relation }}
),
coded AS (
    SELECT
{% for column in coded %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM named
{% for join in lookups %}
    {{ join }}
{% endfor %}
)
SELECT
{% for column in packed %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM coded
