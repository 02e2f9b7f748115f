SELECT *
FROM event
ORDER BY
    entry_id,
    sequence,
    ordinal
