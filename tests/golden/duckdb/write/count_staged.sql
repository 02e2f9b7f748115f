SELECT
    count(*) AS staged_rows
FROM staged
