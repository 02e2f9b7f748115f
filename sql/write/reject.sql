-- Remove sampled rows that cannot be: each condition is the owner's or a CHECK of the catalog.
-- A condition that is NULL, or fails to be computed, removes nothing, as with CHECK constraints.
-- in:  staged (table with the columns row, a0, a1, ...), placed (the same, perhaps with leaves beside), first (row number; earlier rows were looked at),
--      number (a name for row that no column has), columns (<expression> AS <column name>),
--      derived (<expression> AS <column name>), conditions (boolean expressions over the columns)
-- out: nothing
DELETE FROM {{ staged }}
WHERE "row" IN (
    WITH decoded AS (
        SELECT
            "row" AS {{ number }},
{% for column in columns %}
            {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
        FROM {{ placed }}
        WHERE "row" >= {{ first }}
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

)
