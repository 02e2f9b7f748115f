COPY (
SELECT 1 AS a
) TO 'it''s' (FORMAT json, ARRAY TRUE)
