(
    SELECT
        placed.*,
        l0.low0 AS v0_low0,
        l0.high0 AS v0_high0,
        l0.low1 AS v0_low1,
        l0.high1 AS v0_high1,
        l2.text0 AS v2_text0,
        i3_0.id AS v3_id0
    FROM (
        SELECT
            *,
            CAST(a0 AS BIGINT) * 4294967296 + CAST(hash(xor(hash('place'), CAST(1 AS UBIGINT))) >> 32 AS BIGINT) AS w0,
            CAST(a2 AS BIGINT) * 4294967296 + CAST(hash(xor(hash('word'), CAST(1 AS UBIGINT))) >> 32 AS BIGINT) AS w2,
            CAST(a3 AS BIGINT) * 4294967296 + CAST(hash(xor(hash('kind'), CAST(1 AS UBIGINT))) >> 32 AS BIGINT) AS w3
        FROM staged
    ) AS placed
    LEFT JOIN (SELECT unnest(CAST('[0, 4294967296, 8589934592, 10737418240, 12884901888]' AS BIGINT[])) AS start, unnest(CAST('[0.0, 0.0, 0.5000000000000018, 0.5000000000000018, 0.0]' AS DOUBLE[])) AS low0, unnest(CAST('[0.4999999999999982, 0.4999999999999982, 1.0, 1.0, 1.0]' AS DOUBLE[])) AS high0, unnest(CAST('[1, 3, 1, 3, 1]' AS BIGINT[])) AS low1, unnest(CAST('[2, 4, 2, 4, 4]' AS BIGINT[])) AS high1, unnest(CAST('[0, 1, 2, 2, 3]' AS BIGINT[])) AS code, unnest(CAST('[4294967296, 8589934592, 10737418240, 12884901888, 17179869184]' AS BIGINT[])) AS stop) AS l0 ON placed.w0 >> 32 = l0.code AND placed.w0 < l0.stop AND placed.w0 >= l0.start
    LEFT JOIN (SELECT unnest(CAST('[0, 4294967296, 6442450944, 8589934592, 12884901888]' AS BIGINT[])) AS start, nullif(unnest(string_split('''a__other__', chr(1))), chr(2)) AS text0, unnest(CAST('[0, 1, 1, 2, 3]' AS BIGINT[])) AS code, unnest(CAST('[4294967296, 6442450944, 8589934592, 12884901888, 17179869184]' AS BIGINT[])) AS stop) AS l2 ON placed.w2 >> 32 = l2.code AND placed.w2 < l2.stop AND placed.w2 >= l2.start
    LEFT JOIN (SELECT unnest(CAST('[0, 2147483648, 4294967296]' AS BIGINT[])) AS start, unnest(CAST('[0, 1, 0]' AS BIGINT[])) AS low0, unnest(CAST('[0, 1, 1]' AS BIGINT[])) AS high0, unnest(CAST('[0, 0, 1]' AS BIGINT[])) AS code, unnest(CAST('[2147483648, 4294967296, 8589934592]' AS BIGINT[])) AS stop) AS l3 ON placed.w3 >> 32 = l3.code AND placed.w3 < l3.stop AND placed.w3 >= l3.start
    LEFT JOIN (SELECT unnest(string_split('bit''s', chr(1))) AS id, unnest(range(2)) AS number) AS i3_0 ON i3_0.number = (l3.low0 + CAST(((hash(xor(hash('kind'), CAST(2 AS UBIGINT))) >> 24) * CAST((l3.high0 - l3.low0 + 1) AS UBIGINT)) >> 40 AS BIGINT))
)
