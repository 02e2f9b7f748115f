SELECT
    release,
    release_id,
    name,
    total,
    CAST(certificate AS VARCHAR) AS certificate
FROM "d".dpsyn.releases
ORDER BY
    created,
    name
