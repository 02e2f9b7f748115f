-- Numbers that many cores can read side by side, which range() does not let them.
-- in:  table, rows
-- out: temporary table of the numbers from 0 to rows - 1, in a column range
CREATE TEMP TABLE {{ table }} AS
SELECT range
FROM range({{ rows }})
