(
    SELECT
        *,
        rowid AS rowid
    FROM dpsyn_filed.main.t0
)
