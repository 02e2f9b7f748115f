{#- Staged codes with the leaf of each row beside them, to put after FROM. A row falls into the last leaf that
    begins at or before its code followed by 32 random bits.
    in:  staged (what stands after FROM: the columns row, a0, a1, ...),
         written (codes that are written: <expression> AS w<i>),
         joins (LEFT or ASOF LEFT JOIN with leaves, then LEFT JOIN with ids),
         columns (what a leaf says of a column: <name> AS v<i>_<name>)
    out: the same rows and columns, and these
#}
(
    SELECT
        placed.*,
{% for column in columns %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM (
        SELECT
            *,
{% for column in written %}
            {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
        FROM {{ staged }}
    ) AS placed
{% for join in joins %}
    {{ join }}
{% endfor %}
)
