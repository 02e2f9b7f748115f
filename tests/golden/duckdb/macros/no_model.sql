SELECT
    CAST(NULL AS DATE) AS "d"
WHERE error('it''s no network') IS NULL
