-- The rows of each unit in order, each beside the row before. Rows that are alike in all codes may change places.
-- in:  table, families (table of families.sql, with a moment), codes (names)
-- out: a temporary table: part, place (1 for a first row), most (rows of the unit), since (DOUBLE, NULL in a
--      first row), the codes, and p<i> (code i in the row before, NULL in a first row)
CREATE TEMP TABLE {{ table }} AS
SELECT
    part,
    row_number() OVER run AS place,
    count(*) OVER (PARTITION BY part, unit) AS most,
    moment - lag(moment) OVER run AS since{% for code in codes %},
    {{ code }},
    lag({{ code }}) OVER run AS p{{ loop.index0 }}
{%- endfor %}

FROM {{ families }}
WHERE isfinite(moment)
WINDOW run AS (
    PARTITION BY part, unit
    ORDER BY
        moment{% for code in codes %},
        {{ code }}
{%- endfor %}

)
