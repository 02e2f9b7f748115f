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
JOIN (
    SELECT *
    FROM linked_1
    QUALIFY row_number() OVER (
        PARTITION BY
            side,
            r0,
            r1
        ORDER BY id
    ) = 1
) AS above
    ON own.side = above.side
    AND own.r1 = above.r0
    AND own.r2 = above.r1
