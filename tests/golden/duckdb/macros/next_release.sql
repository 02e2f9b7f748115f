SELECT CAST(COALESCE(max(release), 0) + 1 AS BIGINT) AS number
FROM "d".dpsyn.releases
