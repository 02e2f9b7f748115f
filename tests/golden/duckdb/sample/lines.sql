(
    SELECT
        parent,
        value % 2 AS value,
        CAST((upto - weight) * 4294967296 // whole AS UINTEGER) AS low,
        CAST(CASE WHEN upto = whole THEN 4294967295 ELSE upto * 4294967296 // whole - 1 END AS UINTEGER) AS high
    FROM (
        SELECT
            parent,
            value,
            weight,
            CAST(sum(weight) OVER (PARTITION BY parent ORDER BY value ROWS UNBOUNDED PRECEDING) AS UBIGINT) AS upto,
            CAST(sum(weight) OVER (PARTITION BY parent) AS UBIGINT) AS whole
        FROM model
        WHERE TRUE AND node = 1
    )
)
