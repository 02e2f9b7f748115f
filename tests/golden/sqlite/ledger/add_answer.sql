INSERT INTO answer (entry_id, sequence, question, shapes, digest, content)
VALUES (:entry_id, :sequence, :question, :shapes, :digest, :content)
