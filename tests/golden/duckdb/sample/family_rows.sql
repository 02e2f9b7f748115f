SELECT
    w0,
    w1,
    CAST(family * 65 + place AS UBIGINT) AS "row"
FROM (
    SELECT
        *,
        "row" AS family,
        unnest(range(1, n + 1)) AS place
    FROM (
SELECT 1 AS a
    )
)
