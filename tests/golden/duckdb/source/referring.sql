(
SELECT
    t."a",
    t."b""",
    r0.code AS "code of a",
    CASE WHEN t."c" IS NOT NULL AND t."d" IS NOT NULL THEN CAST(1 AS BIGINT) END AS "code of c"
FROM src AS t
LEFT JOIN "temp"."main"."p" AS r0
    ON encode(CAST(t."a" AS VARCHAR)) = r0.k0 AND encode(CAST(t."b""" AS VARCHAR)) = r0.k1
)
