ATTACH 'x.duckdb' AS "x" (TYPE duckdb)
