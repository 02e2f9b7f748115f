-- Note where a release was written.
-- in:  :entry_id, :ordinal, :target, :synthetic_rows
-- out: one row of publication
INSERT INTO publication (entry_id, ordinal, target, synthetic_rows)
VALUES (:entry_id, :ordinal, :target, :synthetic_rows)
