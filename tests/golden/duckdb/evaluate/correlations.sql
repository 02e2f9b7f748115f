WITH numbers AS (
    SELECT
        v0 AS z0,
        v3 AS z3
    FROM src
)
SELECT
    corr(z0, z3) AS r0
FROM numbers
