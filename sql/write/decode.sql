-- Synthetic rows as values, with the source's column names, order and types.
-- Rows are ordered while they are still narrow codes, so that files are the same byte for byte.
-- in:  staged (table with the columns row, a0, a1, ...),
--      numbers (places of rows, for keys and unit ids: <place> AS n<i>; often none),
--      in_place (1: the table lies in the order of row, and is read as it lies; 0: it does not, or not surely),
--      rounds (of a shuffle: in each the new places, <place> AS n<i>), last (how many they are),
--      columns (<expression> AS <column name>),
--      written (all columns in order, computed ones as <expression> AS <column name>; none: columns are all)
-- out: one row a staged row, in the order of row
{% if numbers %}
WITH numbered AS (
    SELECT
        *,
{% for number in numbers %}
        {{ number }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM {{ staged }}
),
{% for moved in rounds %}
round{{ loop.index }} AS (
    SELECT * REPLACE (
{% for number in moved %}
        {{ number }}{% if not loop.last %},{% endif %}

{% endfor %}
    )
    FROM {% if loop.first %}numbered{% else %}round{{ loop.index - 1 }}{% endif %}

),
{% endfor %}
ordered AS (
    SELECT *
    FROM {% if last %}round{{ last }}{% else %}numbered{% endif %}

{% if not in_place %}
    ORDER BY "row"
{% endif %}
)
{%- else %}
WITH ordered AS (
    SELECT *
    FROM {{ staged }}
{% if not in_place %}
    ORDER BY "row"
{% endif %}
)
{%- endif %}
{% if written %}
,
decoded AS (
    SELECT
{% for column in columns %}
        {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM ordered
)
SELECT
{% for column in written %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM decoded
{% else %}

SELECT
{% for column in columns %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM ordered
{% endif %}
