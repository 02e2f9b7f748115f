-- How often a release was written.
-- in:  :entry_id
-- out: publications
SELECT count(*) AS publications
FROM publication
WHERE entry_id = :entry_id
