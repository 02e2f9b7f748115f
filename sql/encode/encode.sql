-- Codes of the source's rows, for the scans that follow (private side).
-- in:  relation (what stands after FROM),
--      named (raw columns under neutral names: <column> AS c<i>),
--      keys (of named values that make up a place in a hierarchy: <expression> AS c<i>; often none),
--      coded (one total function of one value each: <expression> AS k<i>),
--      lookups (LEFT JOIN with the labels of a text attribute that has many, or where its codes begin, AS l<i>),
--      packed (mixed-radix codes in the smallest unsigned type: <expression> AS p<i>),
--      carried (columns that stay beside the codes: an expression and a name)
-- out: p0, p1, ... and what is carried; one row a row of the relation
WITH named AS (
    SELECT
{% for one in carried %}
        {{ one.expression }} AS {{ one.name }},
{% endfor %}
{% for column in named %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {{ relation }}
),
{% if keys %}
keyed AS (
    SELECT
        *,
{% for column in keys %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM named
),
{% endif %}
coded AS (
    SELECT
{% for one in carried %}
        {{ one.name }},
{% endfor %}
{% for column in coded %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {% if keys %}keyed{% else %}named{% endif %}

{% for join in lookups %}
    {{ join }}
{% endfor %}
)
SELECT
{% for one in carried %}
    {{ one.name }},
{% endfor %}
{% for column in packed %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM coded
