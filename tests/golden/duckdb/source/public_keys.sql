SELECT
    code,
    decode(k0) AS k0,
    decode(k1) AS k1
FROM "temp"."main"."p"
ORDER BY ALL
