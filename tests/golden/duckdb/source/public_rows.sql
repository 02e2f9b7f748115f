CREATE TEMPORARY TABLE "temp"."main"."p" AS
SELECT
    encode(CAST("a" AS VARCHAR)) AS k0,
    encode(CAST("b""" AS VARCHAR)) AS k1,
    encode(CAST("c" AS VARCHAR)) AS b0,
    dense_rank() OVER (ORDER BY
        encode(CAST("c" AS VARCHAR)) NULLS LAST
    ) - 1 AS code
FROM src
