INSERT INTO staged
SELECT
    1,
    "a""",
    NULL,
    b,
    n
FROM (
SELECT 1 AS a
) AS counted
