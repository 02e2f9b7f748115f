SELECT
    w0,
    w1,
    CAST(person * 65 + place AS UBIGINT) AS "row"
FROM (
    SELECT
        *,
        "row" AS person,
        unnest(range(1, w0 & 63 + 1)) AS place
    FROM (
SELECT 1 AS a
    )
)
