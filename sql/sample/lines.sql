-- The values of one node by configuration of its parents, to stand after FROM: each has the numbers from low to
-- high (below 2^32, both included), as many as its weight says. All of a configuration lie side by side.
-- in:  table (node, parent, value, weight), condition (which of its rows), packed (an expression of value)
-- out: a subquery with the columns parent, value (packed), low, high
(
    SELECT
        parent,
        {{ packed }} AS value,
        CAST((upto - weight) * 4294967296 // whole AS UINTEGER) AS low,
        CAST(CASE WHEN upto = whole THEN 4294967295 ELSE upto * 4294967296 // whole - 1 END AS UINTEGER) AS high
    FROM (
        SELECT
            parent,
            value,
            weight,
            CAST(sum(weight) OVER (PARTITION BY parent ORDER BY value ROWS UNBOUNDED PRECEDING) AS UBIGINT) AS upto,
            CAST(sum(weight) OVER (PARTITION BY parent) AS UBIGINT) AS whole
        FROM {{ table }}
        WHERE {{ condition }}
    )
)
