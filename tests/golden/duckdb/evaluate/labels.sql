CREATE TEMP TABLE labels AS
WITH ranked AS (
    SELECT
        value,
        row_number() OVER (ORDER BY real DESC, value) - 1 AS place
    FROM temp.main.distribution
    WHERE value IS NOT NULL
        AND real > 0
)
SELECT
    value,
    CAST(CASE WHEN place < 100 THEN place + 4 ELSE 2 END AS UTINYINT) AS code
FROM ranked
