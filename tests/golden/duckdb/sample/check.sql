SELECT
    count(*) AS found,
    count(*) FILTER (
        WHERE TRUE
            AND a0 IS NOT NULL
            AND a1 IS NOT NULL
    ) AS complete
FROM staged
WHERE
    "row" >= 5
    AND "row" < 5 + 8589934592
