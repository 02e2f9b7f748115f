-- A table of nodes to count rows in.
-- in:  table, text (per hierarchy: whether ids are text, 1 or 0)
-- out: empty temporary table: place BIGINT, shape INTEGER, n0, n1, ...
CREATE TEMP TABLE {{ table }} (
    place BIGINT,
    shape INTEGER{% for one in text %},
    n{{ loop.index0 }} {% if one %}VARCHAR{% else %}BIGINT{% endif %}{% endfor %}

)
