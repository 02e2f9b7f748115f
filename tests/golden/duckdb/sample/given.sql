SELECT
    CAST(a0 AS UBIGINT) AS w0,
    CAST(sofar AS UBIGINT) AS w1,
    n,
    "row"
FROM (
    SELECT
        *,
        CAST(sum(n) OVER (ORDER BY "row" ROWS UNBOUNDED PRECEDING) AS BIGINT) - n AS sofar
    FROM (
        SELECT
            *,
            a2 + 1 AS n
        FROM (
SELECT 1 AS a
        )
    )
)
