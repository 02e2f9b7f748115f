-- The finite values of the real table, where they are few.
-- in:  table (an ordered distribution)
-- out: value, ascending
SELECT value
FROM {{ table }}
WHERE isfinite(value)
    AND real > 0
ORDER BY value
