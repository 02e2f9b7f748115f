ATTACH '/scratch/filed.duckdb' AS dpsyn_filed (ENCRYPTION_KEY 'ab12')
