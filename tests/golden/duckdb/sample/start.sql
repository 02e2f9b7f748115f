SELECT
    CAST(0 AS UBIGINT) AS w0,
    CAST(0 AS UBIGINT) AS w1,
    entries0,
    CAST(range AS UBIGINT) AS "row"
FROM range(0, 5)
