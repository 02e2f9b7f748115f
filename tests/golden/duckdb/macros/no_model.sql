SELECT error('it''s no network') AS problem
