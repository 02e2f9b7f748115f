-- Sampled codes as values in the columns of the release; rows that the owner's conditions exclude are left out.
-- in:  staged (what stands after FROM: the columns row, a0, a1, ...), columns (<expression> AS <column name>), written (all
--      columns in order, computed ones as <expression> AS <column name>), conditions
-- out: a query of at most as many rows as are staged, in the order of row
WITH ordered AS (
    SELECT *
    FROM {{ staged }}
    ORDER BY "row"
),
decoded AS (
    SELECT
{% for column in columns %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM ordered
),
computed AS (
    SELECT
{% for column in written %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM decoded
)
SELECT *
FROM computed
WHERE TRUE
{% for condition in conditions %}
    AND {{ condition }} IS NOT TRUE
{% endfor %}
