SELECT "row"
FROM staged
ORDER BY "row"
