-- The least finite value that so many hundredths of the rows do not exceed.
-- in:  table (an ordered distribution), rows, rows_to (the columns of one of its tables)
-- out: hundredth (0 to 100; a step that has no value of its own is absent), value; ascending
SELECT
    CAST(100 * {{ rows_to }} // (SELECT max({{ rows_to }}) FROM {{ table }}) AS INTEGER) AS hundredth,
    min(value) AS value
FROM {{ table }}
WHERE isfinite(value)
    AND {{ rows }} > 0
GROUP BY hundredth
ORDER BY hundredth
