(
    SELECT
        coalesce(present.parent, past.parent) AS unit,
        CASE
            WHEN past.parent IS NULL THEN 2
            WHEN present.parent IS NULL THEN 1
            ELSE 0
        END AS presence,
        present.p0 AS n0,
        coalesce(past.p0, 3) AS b0
    FROM (
SELECT parent, p0 FROM present_rows
    ) AS present
LEFT JOIN (
SELECT parent, p0 FROM past_rows
    ) AS past
        ON present.parent = past.parent
)
