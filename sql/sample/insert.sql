-- Independently drawn rows go to the staged ones.
-- in:  staged (table with the columns row, a0, a1, ...), query (rows with these columns)
-- out: one row a row of the query
INSERT INTO {{ staged }}
{{ query }}
