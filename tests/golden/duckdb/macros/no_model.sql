SELECT 1 AS problem
WHERE error('it''s no network') IS NULL
