-- How many rows are staged, how many of them lie where their number says, and whether a query gives the rows of a
-- table in the order in which they lie (public: they were sampled).
-- in:  staged
-- out: staged_rows, in_place, kept
SELECT
    count(*) AS staged_rows,
    count(*) FILTER (WHERE "row" = rowid) AS in_place,
    CAST(current_setting('preserve_insertion_order') AS BOOLEAN) AS kept
FROM {{ staged }}
