SELECT
    count(*) AS staged_rows
FROM staged
WHERE "row" >= 0
