SELECT
    question,
    shapes,
    digest,
    content
FROM answer
WHERE
    entry_id = :entry_id
    AND sequence = :sequence
