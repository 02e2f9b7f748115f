-- How many rows are staged (public: they were sampled).
-- in:  staged
-- out: staged_rows
SELECT
    count(*) AS staged_rows
FROM {{ staged }}
