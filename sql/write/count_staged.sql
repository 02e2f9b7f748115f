-- How many rows are staged (public: they were sampled), from row number first on.
-- in:  staged, first (row number)
-- out: staged_rows
SELECT
    count(*) AS staged_rows
FROM {{ staged }}
WHERE "row" >= {{ first }}
