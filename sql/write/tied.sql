{#- Staged codes with keys of other rows beside them, to put after FROM.
    in:  staged (table with the columns row, a0, a1, ..., parent),
         numbers (of the rows that are named: <expression> AS m<i>),
         joins (LEFT JOIN with tables of keys), columns (<key> AS f<i>)
    out: the same rows and columns, and these
#}
(
    SELECT
        named.*,
{% for column in columns %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM (
        SELECT
            *,
{% for number in numbers %}
            {{ number }}{% if not loop.last %},{% endif %}

{% endfor %}
        FROM {{ staged }}
    ) AS named
{% for join in joins %}
    {{ join }}
{% endfor %}
)
