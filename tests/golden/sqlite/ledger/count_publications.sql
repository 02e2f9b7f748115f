SELECT count(*) AS publications
FROM publication
WHERE entry_id = :entry_id
