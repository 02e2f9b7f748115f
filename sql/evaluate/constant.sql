-- How many units have several rows, and how many of these have one value of a column in all their rows.
-- in:  table (of families.sql), values (its hashes of values)
-- out: one row per part: several (units of several rows), and of these s<i> with one value of column i; BIGINT
WITH units AS (
    SELECT
        part{% for value in values %},
        min({{ value }}) = max({{ value }}) AS same{{ loop.index0 }}
{%- endfor %}

    FROM {{ table }}
    WHERE n > 1
    GROUP BY
        part,
        unit
)
SELECT
    part,
    count(*) AS several{% for value in values %},
    count(*) FILTER (WHERE same{{ loop.index0 }}) AS s{{ loop.index0 }}
{%- endfor %}

FROM units
GROUP BY part
