-- The units that the rows of a table of a tree belong to, by the keys of these rows (private side).
-- in:  relation (what stands after FROM), key (the row's own, as bytes, in a row called own),
--      owner (the key of the parent's row), units (a query like this of the parent; none: the root)
-- out: its_unit and its_key, each pair once
SELECT DISTINCT
{% if units %}
    up.its_unit,
{% else %}
    {{ key }} AS its_unit,
{% endif %}
    {{ key }} AS its_key
FROM {{ relation }} AS own
{% if units %}
JOIN (
{{ units }}
) AS up
    ON {{ owner }} = up.its_key
{% endif %}
WHERE {{ key }} IS NOT NULL
