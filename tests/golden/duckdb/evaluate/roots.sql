CREATE TEMP TABLE linked_1 AS
SELECT
    CASE side WHEN 1 THEN 2 ELSE 0 END AS part,
    side,
    id,
    id AS unit,
    CAST(NULL AS BIGINT) AS parent,
    k0 AS k0_0,
    r0,
    r1
FROM coded
WHERE side < 2 AND r0 IS NOT NULL AND r1 IS NOT NULL
