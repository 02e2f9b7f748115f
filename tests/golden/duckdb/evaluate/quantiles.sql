SELECT
    CAST(100 * real_to // (SELECT max(real_to) FROM temp.main.distribution) AS INTEGER) AS hundredth,
    min(value) AS value
FROM temp.main.distribution
WHERE isfinite(value)
    AND real > 0
GROUP BY hundredth
ORDER BY hundredth
