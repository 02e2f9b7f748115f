-- How many rows are staged, how many of them lie after one of a greater or equal number, and whether a query gives the
-- rows of a table in the order in which they lie (public: they were sampled).
-- in:  staged
-- out: staged_rows, fallen, kept
SELECT
    count(*) AS staged_rows,
    count(*) FILTER (WHERE "row" <= "before") AS fallen,
    CAST(current_setting('preserve_insertion_order') AS BOOLEAN) AS kept
FROM (
    SELECT
        "row",
        lag("row") OVER () AS "before"
    FROM {{ staged }}
)
