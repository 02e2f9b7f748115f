DELETE FROM "d".dpsyn."shares"
WHERE release IN (
    SELECT release
    FROM "d".dpsyn.releases
    WHERE translate(name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') = 'it''s.t'
        OR translate(certificate ->> '$.database.name', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') = 'it''s'
)
