CREATE TEMP TABLE linked_2 AS
SELECT
    above.part,
    own.side,
    own.id,
    above.unit,
    above.id AS parent,
    above.k0_0,
    own.k0 AS k1_0,
    own.r0
FROM coded AS own
JOIN linked_1 AS above
    ON own.side = above.side
    AND own.r1 = above.r0
    AND own.r2 = above.r1
