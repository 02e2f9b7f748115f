-- Rows of one chunk before any variable is drawn: their numbers, and words of zeros.
-- in:  work (table), start and stop (row numbers), words (names)
-- out: the columns row, w0, w1, ...
CREATE OR REPLACE TEMP TABLE {{ work }} AS
SELECT
{% for word in words %}
    CAST(0 AS UBIGINT) AS {{ word }},
{% endfor %}
    range AS "row"
FROM range({{ start }}, {{ stop }})
