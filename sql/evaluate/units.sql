-- How many rows units have, and how many units have one value of a column in all their rows.
-- in:  relation (rows with side, part, unit and the values), values (names)
-- out: one row per part and octave of the number of rows: units, rows, several (units of several rows),
--      and of these s<i> with one value of column i; BIGINT
WITH units AS (
    SELECT
        part,
        count(*) AS n{% for value in values %},
        count({{ value }}) = 0
            OR (count({{ value }}) = count(*) AND min({{ value }}) = max({{ value }})) AS same{{ loop.index0 }}
{%- endfor %}

    FROM {{ relation }}
    WHERE side < 2
        AND unit IS NOT NULL
    GROUP BY
        part,
        unit
)
SELECT
    part,
    CAST(floor(log2(n)) AS INTEGER) AS octave,
    count(*) AS units,
    CAST(sum(n) AS BIGINT) AS rows,
    count(*) FILTER (WHERE n > 1) AS several{% for value in values %},
    count(*) FILTER (WHERE n > 1 AND same{{ loop.index0 }}) AS s{{ loop.index0 }}
{%- endfor %}

FROM units
GROUP BY
    part,
    octave
