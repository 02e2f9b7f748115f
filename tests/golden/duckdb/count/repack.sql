SELECT
    CAST(d0 AS UTINYINT) AS p0,
    CAST((CAST(([0, 0, 1])[d1 + 1] AS INTEGER) * 3 + d2) AS UTINYINT) AS p1
FROM (
    SELECT
        CAST((p0 // 3) AS BIGINT) AS d0,
        CAST((p0 % 3) AS BIGINT) AS d1,
        CAST(p1 AS BIGINT) AS d2
    FROM coded
) AS digits
