(
    SELECT
        coalesce(present.unit, past.unit) AS unit,
        CASE
            WHEN past.unit IS NULL THEN 2
            WHEN present.unit IS NULL THEN 1
            ELSE 0
        END AS presence,
        present.p0 AS n0,
        coalesce(past.p0, 3) AS b0
    FROM (
SELECT unit, p0 FROM present_rows
    ) AS present
LEFT JOIN (
SELECT unit, p0 FROM past_rows
    ) AS past
        ON present.unit = past.unit
)
