-- Counts of the cells of two columns.
-- in:  table (of linked.sql or children.sql), first, second (its columns)
-- out: one row per part and cell: first, second, rows BIGINT
SELECT
    part,
    {{ first }} AS first,
    {{ second }} AS second,
    count(*) AS rows
FROM {{ table }}
GROUP BY ALL
