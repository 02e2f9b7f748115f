-- Continue the chain.
-- in:  :position, :kind, :body (canonical JSON), :previous, :hash
-- out: one row of record
INSERT INTO record (position, kind, body, previous, hash)
VALUES (:position, :kind, :body, :previous, :hash)
