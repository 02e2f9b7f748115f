-- How often a code follows another one within a unit.
-- in:  table (of steps.sql), previous, code (its columns)
-- out: one row per part, previous (-1 in a first row) and code: rows, lasts (of them last rows); BIGINT
SELECT
    part,
    coalesce(CAST({{ previous }} AS SMALLINT), -1) AS previous,
    {{ code }} AS code,
    count(*) AS rows,
    count(*) FILTER (WHERE place = most) AS lasts
FROM {{ table }}
GROUP BY
    part,
    previous,
    {{ code }}
