SELECT
    count(*) AS staged_rows,
    count(*) FILTER (WHERE "row" <= "before") AS fallen,
    CAST(current_setting('preserve_insertion_order') AS BOOLEAN) AS kept
FROM (
    SELECT
        "row",
        lag("row") OVER () AS "before"
    FROM staged
)
