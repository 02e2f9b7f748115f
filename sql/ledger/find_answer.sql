-- The stored answer to one question.
-- in:  :entry_id, :sequence
-- out: question, shapes, digest, content; at most one row
SELECT
    question,
    shapes,
    digest,
    content
FROM answer
WHERE
    entry_id = :entry_id
    AND sequence = :sequence
