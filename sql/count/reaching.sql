-- Counts that reach a public number.
-- in:  query (with a column n), least
-- out: its rows with n of at least that
SELECT *
FROM (
{{ query }}
) AS counted
WHERE n >= {{ least }}
