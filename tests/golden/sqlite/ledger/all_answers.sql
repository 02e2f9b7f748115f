SELECT
    entry_id,
    sequence,
    question,
    shapes,
    digest,
    content
FROM answer
ORDER BY
    entry_id,
    sequence
