-- The numbers of sampled rows that cannot be: each condition is the owner's or a CHECK of the catalog.
-- A condition that is NULL, or fails to be computed, excludes nothing, as with CHECK constraints.
-- in:  placed (what stands after FROM: the columns row, a0, a1, ..., perhaps with leaves beside), looked (the column of row
--      numbers or of draws), first (only rows from it on are looked at), number (a name for row that no column
--      has), columns (<expression> AS <column name>), derived (<expression> AS <column name>),
--      conditions (boolean expressions over the columns)
-- out: the column that number names
WITH decoded AS (
    SELECT
        "row" AS {{ number }},
{% for column in columns %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {{ placed }}
    WHERE {{ looked }} >= {{ first }}
),
computed AS (
    SELECT
        *{% if derived %},{% endif %}

{% for column in derived %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM decoded
)
SELECT
    {{ number }}
FROM computed
WHERE {% for condition in conditions %}{% if not loop.first %}
    OR {% endif %}COALESCE({{ condition }}, FALSE){% if not loop.last %}

{% endif %}{% endfor %}

