-- Drop a temporary table or view that this connection made.
-- in:  view (1 | 0), name (qualified identifier)
-- out: nothing
{% if view %}
DROP VIEW IF EXISTS {{ name }}
{% else %}
DROP TABLE IF EXISTS {{ name }}
{% endif %}
