SELECT
    name,
    sql
FROM sqlite_master
WHERE sql IS NOT NULL
ORDER BY name
