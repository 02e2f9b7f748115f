{#- Rows of all tables as small codes, to put after FROM.
    in:  sides (number: 0 real, 1 synthetic, 2 holdout; relation: after FROM), values (of each column: an
         expression), codes (of each column: an expression of its value v<i>), lookups (LEFT JOINs with labels),
         more (further columns of values, with their names; often none)
    out: side, k0, k1, ... UTINYINT, and what more says
#}
(
WITH valued AS (
{% for side in sides %}
    SELECT
        CAST({{ side.number }} AS UTINYINT) AS side,
{% for value in values %}
        {{ value }} AS v{{ loop.index0 }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {{ side.relation }}
{% if not loop.last %}
    UNION ALL
{% endif %}
{% endfor %}
)
SELECT
    side{% for column in more %},
    {{ column }}
{%- endfor %}
{%- for code in codes %},
    CAST({{ code }} AS UTINYINT) AS k{{ loop.index0 }}
{%- endfor %}

FROM valued
{% for join in lookups %}
{{ join }}
{% endfor %}
)
