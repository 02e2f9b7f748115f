SELECT
    CAST((CAST((LEAST(CAST(0 AS BIGINT) + ([2, 4, 18])[d0 + 1] + ([0, 6, 2])[d1 + 1], CAST(11 AS BIGINT) + ([8, 0, 0])[d0 + 1] + ([4, 0, 0])[d1 + 1]) % 2) AS INTEGER) * 3 + d2) AS UTINYINT) AS p0,
    CAST(([0, 0, 1])[(LEAST(CAST(0 AS BIGINT) + ([0, 3, 3])[d0 + 1], CAST(1 AS BIGINT) + ([3, 0, 0])[d0 + 1], CAST(5 AS BIGINT) + ([3, 3, 0])[d0 + 1]) % 3) + 1] AS UTINYINT) AS p1
FROM (
    SELECT
        CAST((p0 // 3) AS BIGINT) AS d0,
        CAST((p0 % 3) AS BIGINT) AS d1,
        CAST(p1 AS BIGINT) AS d2
    FROM coded
) AS digits
