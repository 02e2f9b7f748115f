(
    SELECT
        *,
        rowid AS rowid
    FROM dpsyn_filed.main.t0
    WHERE rowid >= 0
    AND rowid < 7
)
