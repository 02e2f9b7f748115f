(
    SELECT
        list(
            CAST(threshold AS UBIGINT)
            | (CAST(coalesce(value, 0) AS UBIGINT) << 31)
            | (CAST(alias AS UBIGINT) << 34)
            ORDER BY position
        ) AS entries0
    FROM slots WHERE node = 1
)
