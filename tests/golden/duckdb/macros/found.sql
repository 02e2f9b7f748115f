SELECT r.*
FROM dpsyn.releases AS r
WHERE r.release = (
    SELECT
        CASE
            WHEN k.release IS NULL
                THEN CAST(error(
                    'it''s'
                    || ': there is no release '
                    || COALESCE('''' || replace(CAST(wanted_release AS VARCHAR), '''', '''''') || '''', 'NULL')
                    || ' here; there are '
                    || COALESCE(
                        (
                            SELECT
                                string_agg('''' || replace(n.name, '''', '''''') || '''', ', ' ORDER BY n.created, n.name)
                                || CASE WHEN max(n.every) > 5 THEN ', ...' ELSE '' END
                            FROM (
                                SELECT
                                    e.name,
                                    e.created,
                                    count(*) OVER () AS every
                                FROM dpsyn.releases AS e
                                ORDER BY
                                    e.created,
                                    e.name
                                LIMIT 5
                            ) AS n
                        ),
                        'none'
                    )
                ) AS INTEGER)
            ELSE k.release
        END
    FROM (
        SELECT max(c.release) AS release
        FROM dpsyn.releases AS c
        WHERE translate(c.name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')
            = translate(CAST(wanted_release AS VARCHAR), 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')
    ) AS k
)
