INSERT INTO account (name, kind, shown_delta)
VALUES (:name, :kind, :shown_delta)
