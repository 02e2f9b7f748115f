SELECT name
FROM "d".dpsyn.releases
ORDER BY
    created,
    name
