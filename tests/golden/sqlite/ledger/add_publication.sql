INSERT INTO publication (entry_id, ordinal, target, synthetic_rows)
VALUES (:entry_id, :ordinal, :target, :synthetic_rows)
