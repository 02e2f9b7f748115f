-- A table for counts of several tallies (private side).
-- in:  table, integers (names of keys), bytes (names of keys)
-- out: empty temporary table: tally INTEGER (whose count it is), the keys BIGINT and BLOB (NULL where a tally
--      has fewer), n BIGINT
CREATE TEMP TABLE {{ table }} (
    tally INTEGER,
{% for key in integers %}
    {{ key }} BIGINT,
{% endfor %}
{% for key in bytes %}
    {{ key }} BLOB,
{% endfor %}
    n BIGINT
)
