SELECT *
FROM price
ORDER BY entry_id
