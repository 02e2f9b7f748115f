SELECT
    0 AS place,
    CAST(num_rows AS BIGINT) AS num_rows
FROM parquet_file_metadata('a')
UNION ALL
SELECT
    1 AS place,
    CAST(num_rows AS BIGINT) AS num_rows
FROM parquet_file_metadata('b')
ORDER BY place
