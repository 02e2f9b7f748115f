SELECT
    code,
    concat_ws(
        ', ',
        COALESCE(decode(min(b0)), 'NULL'),
        COALESCE(decode(min(b1)), 'NULL')
    ) AS label
FROM "temp"."main"."p"
GROUP BY code
ORDER BY code
