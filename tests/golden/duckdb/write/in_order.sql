SELECT *
FROM staged
ORDER BY "row"
