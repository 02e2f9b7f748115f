INSERT INTO account (name, kind)
VALUES (:name, :kind)
