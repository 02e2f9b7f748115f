INSERT INTO record (position, kind, body, previous, hash)
VALUES (:position, :kind, :body, :previous, :hash)
