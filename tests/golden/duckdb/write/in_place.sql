SELECT
    count(*) AS staged_rows,
    count(*) FILTER (WHERE "row" = rowid) AS in_place,
    CAST(current_setting('preserve_insertion_order') AS BOOLEAN) AS kept
FROM staged
