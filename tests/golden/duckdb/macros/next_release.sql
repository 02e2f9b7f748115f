SELECT
    CAST(COALESCE(max(release), 0) + 1 AS BIGINT) AS number,
    count(*) FILTER (WHERE
        translate(name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') = 'it''s.t'
        OR translate(certificate ->> '$.database.name', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') = 'it''s'
    ) AS earlier
FROM "d".dpsyn.releases
