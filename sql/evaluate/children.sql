-- How many rows of a child table each row of a table has: each number up to 16, then doublings.
-- in:  table, parents, children (tables of linked.sql), columns (codes of parents that are kept)
-- out: a temporary table: part, children BIGINT, number INTEGER (the bin), the columns
CREATE TEMP TABLE {{ table }} AS
WITH counted AS (
    SELECT
        parent,
        count(*) AS children
    FROM {{ children }}
    GROUP BY parent
)
SELECT
    above.part,
    coalesce(counted.children, 0) AS children,
    CAST(
        CASE
            WHEN coalesce(counted.children, 0) <= 16 THEN coalesce(counted.children, 0)
            ELSE 16 + ceil(log2(counted.children / 16))
        END AS INTEGER
    ) AS number{% for column in columns %},
    above.{{ column }}
{%- endfor %}

FROM {{ parents }} AS above
LEFT JOIN counted
    ON above.id = counted.parent
