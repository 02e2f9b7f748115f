WITH numbered AS (
    SELECT
        *,
        "row" AS n0
    FROM staged
),
round1 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (8 - n0 + CASE WHEN n0 > 8 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|0|9'))) & 1) = 1 THEN (8 - n0 + CASE WHEN n0 > 8 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM numbered
),
round2 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (4 - n0 + CASE WHEN n0 > 4 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|1|9'))) & 1) = 1 THEN (4 - n0 + CASE WHEN n0 > 4 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round1
),
round3 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (0 - n0 + CASE WHEN n0 > 0 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|2|9'))) & 1) = 1 THEN (0 - n0 + CASE WHEN n0 > 0 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round2
),
round4 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (6 - n0 + CASE WHEN n0 > 6 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|3|9'))) & 1) = 1 THEN (6 - n0 + CASE WHEN n0 > 6 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round3
),
round5 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (7 - n0 + CASE WHEN n0 > 7 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|4|9'))) & 1) = 1 THEN (7 - n0 + CASE WHEN n0 > 7 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round4
),
round6 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (4 - n0 + CASE WHEN n0 > 4 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|5|9'))) & 1) = 1 THEN (4 - n0 + CASE WHEN n0 > 4 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round5
),
round7 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (0 - n0 + CASE WHEN n0 > 0 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|6|9'))) & 1) = 1 THEN (0 - n0 + CASE WHEN n0 > 0 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round6
),
round8 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (6 - n0 + CASE WHEN n0 > 6 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|7|9'))) & 1) = 1 THEN (6 - n0 + CASE WHEN n0 > 6 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round7
),
round9 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (9 - n0 + CASE WHEN n0 > 9 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|8|9'))) & 1) = 1 THEN (9 - n0 + CASE WHEN n0 > 9 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round8
),
round10 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (6 - n0 + CASE WHEN n0 > 6 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|9|9'))) & 1) = 1 THEN (6 - n0 + CASE WHEN n0 > 6 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round9
),
round11 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (7 - n0 + CASE WHEN n0 > 7 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|10|9'))) & 1) = 1 THEN (7 - n0 + CASE WHEN n0 > 7 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round10
),
round12 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (7 - n0 + CASE WHEN n0 > 7 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|11|9'))) & 1) = 1 THEN (7 - n0 + CASE WHEN n0 > 7 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round11
),
round13 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (1 - n0 + CASE WHEN n0 > 1 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|12|9'))) & 1) = 1 THEN (1 - n0 + CASE WHEN n0 > 1 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round12
),
round14 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (7 - n0 + CASE WHEN n0 > 7 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|13|9'))) & 1) = 1 THEN (7 - n0 + CASE WHEN n0 > 7 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round13
),
round15 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (3 - n0 + CASE WHEN n0 > 3 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|14|9'))) & 1) = 1 THEN (3 - n0 + CASE WHEN n0 > 3 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round14
),
round16 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (1 - n0 + CASE WHEN n0 > 1 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|15|9'))) & 1) = 1 THEN (1 - n0 + CASE WHEN n0 > 1 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round15
),
round17 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (6 - n0 + CASE WHEN n0 > 6 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|16|9'))) & 1) = 1 THEN (6 - n0 + CASE WHEN n0 > 6 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round16
),
round18 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (9 - n0 + CASE WHEN n0 > 9 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|17|9'))) & 1) = 1 THEN (9 - n0 + CASE WHEN n0 > 9 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round17
),
round19 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (6 - n0 + CASE WHEN n0 > 6 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|18|9'))) & 1) = 1 THEN (6 - n0 + CASE WHEN n0 > 6 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round18
),
round20 AS (
    SELECT * REPLACE (
        CASE WHEN (hash(xor(CAST(greatest(n0, (3 - n0 + CASE WHEN n0 > 3 THEN 10 ELSE 0 END)) AS UBIGINT), hash('id|order|19|9'))) & 1) = 1 THEN (3 - n0 + CASE WHEN n0 > 3 THEN 10 ELSE 0 END) ELSE n0 END AS n0
    )
    FROM round19
),
ordered AS (
    SELECT *
    FROM round20
    ORDER BY "row"
),
decoded AS (
    SELECT
        ('key-' || lpad(CAST(n0 + 1 AS VARCHAR), 6, '0')) AS "id",
        (CAST([0, 1] AS INTEGER[]))[CAST(a0 AS BIGINT) + 1] AS "a",
        CAST('2020-01-01' AS DATE) AS "c"
    FROM ordered
)
SELECT
    "id",
    TRY_CAST(TRY("a" + 1) AS INTEGER) AS "b",
    "a",
    "c"
FROM decoded
