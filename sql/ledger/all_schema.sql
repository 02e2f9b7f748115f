-- Tables, indexes and triggers, to compare a ledger with what schema.sql makes.
-- in:  nothing
-- out: name, sql
SELECT
    name,
    sql
FROM sqlite_master
WHERE sql IS NOT NULL
ORDER BY name
