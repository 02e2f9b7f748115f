(
    SELECT
        s.*,
        k."row" IS NOT NULL AS stays,
        k.kept0,
        k.kept1
    FROM staged AS s
    LEFT JOIN kept AS k
        ON s."row" = k."row"
)
