(
    SELECT
        named.*,
        k0."id" AS f0,
        k1."id" AS f1,
        k2."id" AS f2,
        k3."id" AS f3
    FROM (
        SELECT
            *,
            parent AS m0,
            CASE WHEN (CAST([2, 0, 3] AS BIGINT[]))[CAST(a1 AS BIGINT) + 1] > 0 THEN (CAST([0, 2, 2] AS BIGINT[]))[CAST(a1 AS BIGINT) + 1] + CAST(((hash(xor(CAST("row" AS UBIGINT), hash('g|named|9'))) >> 32) * CAST((CAST([2, 0, 3] AS BIGINT[]))[CAST(a1 AS BIGINT) + 1] AS UBIGINT)) >> 32 AS BIGINT) END AS m1,
            CASE WHEN 7 > 0 AND a2 IS NOT NULL THEN CAST(((hash(xor(CAST("row" AS UBIGINT), hash('o|named|9'))) >> 32) * CAST(7 AS UBIGINT)) >> 32 AS BIGINT) END AS m2,
            CASE WHEN "row" > 0 AND a2 IS NOT NULL THEN CAST(((hash(xor(CAST("row" AS UBIGINT), hash('s|named|9'))) >> 32) * CAST("row" AS UBIGINT)) >> 32 AS BIGINT) ELSE "row" END AS m3
        FROM staged
    ) AS named
    LEFT JOIN k_above AS k0 ON k0.dpsyn_row = named.m0
    LEFT JOIN goods AS k1 ON k1.dpsyn_row = named.m1
    LEFT JOIN k_other AS k2 ON k2.dpsyn_row = named.m2
    LEFT JOIN k_own AS k3 ON k3.dpsyn_row = named.m3
)
