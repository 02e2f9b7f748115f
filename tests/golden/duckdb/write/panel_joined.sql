(
    SELECT
        s.*,
        n.person
    FROM staged AS s
    JOIN numbered AS n
        ON s."row" = n."row"
)
