-- What persons of the period before keep, by the row that is staged for each of them.
-- in:  table (quoted name), numbered (table: row, person; of these persons alone), past (what stands after FROM: the rows of
--      the period before), own (the id of a person, as bytes), id (that of a row of the period before), kept
--      (earlier.<column> AS kept<i>)
-- out: the table: row BIGINT and the columns kept
CREATE TEMPORARY TABLE {{ table }} AS
SELECT
    n."row",
{% for column in kept %}
    {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ numbered }} AS n
JOIN {{ past }} AS earlier
    ON {{ own }} = {{ id }}
