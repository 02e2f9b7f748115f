-- Table of one row that holds the alias tables of a network (public side).
-- in:  table, steps (by node: name, lists (to stand after FROM))
-- out: temporary table with the columns of all lists
CREATE TEMP TABLE {{ table }} AS
SELECT *
FROM (
    SELECT
        1 AS one
) AS nothing
{% for step in steps %}
CROSS JOIN {{ step.lists }} AS {{ step.name }}_lists
{% endfor %}
