SELECT value
FROM temp.main.distribution
WHERE isfinite(value)
    AND real > 0
ORDER BY value
