-- Ordered pairs of distinct rows of one unit, by a code of the first and a code of the second.
-- A unit counts at most `weight` in all: each of its cells counts weight * pairs // (n * (n - 1)). One of more
-- rows than that counts nothing, so that no product passes BIGINT.
-- in:  table (the encoded source: u, which unit a row is of, and n, the rows of the unit), first and second (the
--      codes of a row: BIGINT expressions of its columns), weight
-- out: one row per cell that occurs: a BIGINT, b BIGINT, n BIGINT (the sum of the weights)
WITH coded AS (
    SELECT
        u,
        n,
        {{ first }} AS a,
        {{ second }} AS b
    FROM {{ table }}
    WHERE n > 1
    AND n <= {{ weight }}
),
firsts AS (
    SELECT
        u,
        n,
        a,
        CAST(count(*) AS BIGINT) AS c
    FROM coded
    GROUP BY
        u,
        n,
        a
),
seconds AS (
    SELECT
        u,
        b,
        CAST(count(*) AS BIGINT) AS c
    FROM coded
    GROUP BY
        u,
        b
),
-- A row with both codes would be paired with itself.
same AS (
    SELECT
        u,
        a,
        b,
        CAST(count(*) AS BIGINT) AS c
    FROM coded
    GROUP BY
        u,
        a,
        b
)
SELECT
    firsts.a AS a,
    seconds.b AS b,
    CAST(
        sum(
            {{ weight }} * (firsts.c * seconds.c - COALESCE(same.c, 0)) // (firsts.n * (firsts.n - 1))
        ) AS BIGINT
    ) AS n
FROM firsts
JOIN seconds ON firsts.u = seconds.u
LEFT JOIN same ON firsts.u = same.u AND firsts.a = same.a AND seconds.b = same.b
GROUP BY
    firsts.a,
    seconds.b
