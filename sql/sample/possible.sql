-- Rows without those that the owner's conditions exclude.
-- in:  rows (query: the column row and others), impossible (query over the CTE everything: the numbers of excluded rows)
-- out: a query with the columns of rows
WITH everything AS (
{{ rows }}
)
SELECT *
FROM everything
WHERE "row" NOT IN (
{{ impossible }}
)
