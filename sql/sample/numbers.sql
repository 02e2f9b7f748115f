-- Numbers of rows, to stand after FROM, in blocks of 256. DISTINCT, because many cores read its blocks side by
-- side and only one reads range().
-- in:  first, rows (how many; an expression)
-- out: a subquery with the column range
(
    SELECT unnest(range(
        {{ first }} + block * 256,
        {{ first }} + least((block + 1) * 256, {{ rows }})
    )) AS range
    FROM (
        SELECT DISTINCT range AS block
        FROM range(0, ({{ rows }} + 255) // 256)
    )
)
