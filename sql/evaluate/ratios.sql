-- Sums of numbers within the categories of each column, for correlation ratios.
-- A code is never NULL, so the one code that is not NULL tells by which column a row groups.
-- in:  relation (rows with side, codes and standardised numbers), columns (name: of codes; attribute: its position),
--      numbers (names)
-- out: side, attribute, and for each number n<i> BIGINT, s<i> (sum), q<i> (sum of squares)
SELECT
    side,
    CASE
{% for column in columns %}
        WHEN {{ column.name }} IS NOT NULL THEN {{ column.attribute }}
{% endfor %}
    END AS attribute{% for number in numbers %},
    count({{ number }}) AS n{{ loop.index0 }},
    coalesce(sum({{ number }}), 0) AS s{{ loop.index0 }},
    coalesce(sum({{ number }} * {{ number }}), 0) AS q{{ loop.index0 }}
{%- endfor %}

FROM {{ relation }}
GROUP BY GROUPING SETS (
{% for column in columns %}
    (side, {{ column.name }}){% if not loop.last %},{% endif %}

{% endfor %}
)
