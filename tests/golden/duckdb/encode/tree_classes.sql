SELECT
    up.rowid AS r,
    CAST(LEAST(CAST(2 AS BIGINT) + COALESCE(sum(CAST(([2, 0, 6])[CAST(child.p0 AS BIGINT) + 1] AS BIGINT)), 0) + ([1])[CAST(hash(xor(
            hash(CAST(512000 AS BIGINT)),
            hash(xor(hash(up.h), CAST(7 AS UBIGINT)))
        )) >> 52 AS BIGINT) + 1], CAST(1 AS BIGINT) + COALESCE(sum(CAST(([0, 2, 4])[CAST(child.p0 AS BIGINT) + 1] AS BIGINT)), 0) + ([1])[CAST(hash(xor(
            hash(CAST(512001 AS BIGINT)),
            hash(xor(hash(up.h), CAST(7 AS UBIGINT)))
        )) >> 52 AS BIGINT) + 1]) % 2 AS BIGINT) AS z0
FROM temp.main.dpsyn_kept_1 AS up
LEFT JOIN (
SELECT
    own.rowid AS r,
    own.parent AS unit,
    own.p0 AS p0,
    CAST(own.n AS BIGINT) AS n,
    CAST(own.w AS BIGINT) AS w
FROM temp.main.dpsyn_kept_2 AS own
) AS child
    ON child.unit = up.rowid
GROUP BY
    up.rowid,
    up.h
