SELECT
    up.rowid AS r,
    CAST(LEAST(CAST(2 AS BIGINT) + ((COALESCE(CAST(sum(CAST(([2, 32, 70])[CAST(child.p0 AS BIGINT) + 1] AS BIGINT)) AS BIGINT), 0) >> 0) & 15) + ([1])[CAST(hash(xor(
            hash(CAST(512000 AS BIGINT)),
            hash(xor(hash(up.h), CAST(7 AS UBIGINT)))
        )) >> 52 AS BIGINT) + 1], CAST(1 AS BIGINT) + ((COALESCE(CAST(sum(CAST(([2, 32, 70])[CAST(child.p0 AS BIGINT) + 1] AS BIGINT)) AS BIGINT), 0) >> 4) & 15) + ([1])[CAST(hash(xor(
            hash(CAST(512001 AS BIGINT)),
            hash(xor(hash(up.h), CAST(7 AS UBIGINT)))
        )) >> 52 AS BIGINT) + 1]) % 2 AS UTINYINT) AS z0
FROM temp.main.dpsyn_kept_1 AS up
LEFT JOIN (
SELECT
    own.rowid AS r,
    own.parent AS parent,
    own.p0 AS p0,
    own.n AS n,
    own.w AS w
FROM temp.main.dpsyn_kept_2 AS own
) AS child
    ON child.parent = up.rowid
GROUP BY
    up.rowid,
    up.h
