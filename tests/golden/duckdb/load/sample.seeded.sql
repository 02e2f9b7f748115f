SELECT *
FROM "db".main.dpsyn_sample('it''s', 5, seed := 18446744073709551615)
