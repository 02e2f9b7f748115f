SELECT
    count(*) AS total,
    count(*) FILTER (WHERE k0 IS NULL OR k1 IS NULL) AS without,
    count(DISTINCT (k0, k1)) AS different,
    COALESCE(max(code) + 1, 0) AS codes
FROM "temp"."main"."p"
