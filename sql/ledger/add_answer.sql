-- Store a noisy answer with its question.
-- in:  :entry_id, :sequence, :question, :shapes (canonical JSON), :digest, :content
-- out: one row of answer
INSERT INTO answer (entry_id, sequence, question, shapes, digest, content)
VALUES (:entry_id, :sequence, :question, :shapes, :digest, :content)
