(
    SELECT
        s.*,
        n.person,
        encode(CAST(earlier.who AS VARCHAR)) IS NOT NULL AS stays,
        earlier.born AS kept0,
        earlier.sex AS kept1
    FROM staged AS s
    JOIN numbered AS n
        ON s."row" = n."row"
    LEFT JOIN (SELECT * FROM d.t WHERE day = 1) AS earlier
        ON encode(CAST(n.person + 1 AS VARCHAR)) = encode(CAST(earlier.who AS VARCHAR))
)
