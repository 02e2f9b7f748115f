SELECT *
FROM "db".main.dpsyn_sample('it''s', 5)
