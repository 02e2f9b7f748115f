SELECT *
FROM publication
ORDER BY
    entry_id,
    ordinal
