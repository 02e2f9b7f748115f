-- All stored answers, for checking.
-- in:  nothing
-- out: the table's columns, in order
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
