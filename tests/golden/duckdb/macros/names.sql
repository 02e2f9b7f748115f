SELECT
    name,
    release
FROM "d".dpsyn.releases
ORDER BY
    created,
    name
