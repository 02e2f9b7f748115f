ATTACH '/scratch/filed.duckdb' AS dpsyn_filed
