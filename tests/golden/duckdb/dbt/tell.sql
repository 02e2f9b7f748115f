SET VARIABLE dpsyn_told = '{"told": "it''s"}'
