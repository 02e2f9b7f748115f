SELECT
    count(*) FILTER (
        WHERE "row" % 64 // 8 > 3 OR "row" % 64 % 8 >= 5
    ) AS replaced,
    count(*) AS staged_rows
FROM staged
