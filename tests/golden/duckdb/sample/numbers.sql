(
    SELECT
        entries0,
        unnest(range(
            9 + block * 256,
            9 + least((block + 1) * 256, 5)
        )) AS range
    FROM (
        SELECT DISTINCT range AS block
        FROM range(0, (5 + 255) // 256)
    )
    CROSS JOIN lists AS step0_lists
)
