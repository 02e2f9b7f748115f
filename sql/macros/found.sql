-- The release of a name, compared as the database compares names: ASCII case aside. If there is none, an error
-- lists the releases there are, as SQL writes them. The error is in WHERE, so that it comes whatever columns are
-- read.
-- in:  caller (literal: the macro that was called), wanted (expression: the name), most (names in the list)
-- out: a query of one row of releases
SELECT r.*
FROM dpsyn.releases AS r
WHERE r.release = (
    SELECT
        CASE
            WHEN k.release IS NULL
                THEN CAST(error(
                    {{ caller }}
                    || ': there is no release '
                    || COALESCE('''' || replace(CAST({{ wanted }} AS VARCHAR), '''', '''''') || '''', 'NULL')
                    || ' here; there are '
                    || COALESCE(
                        (
                            SELECT
                                string_agg('''' || replace(n.name, '''', '''''') || '''', ', ' ORDER BY n.created, n.name)
                                || CASE WHEN max(n.every) > {{ most }} THEN ', ...' ELSE '' END
                            FROM (
                                SELECT
                                    e.name,
                                    e.created,
                                    count(*) OVER () AS every
                                FROM dpsyn.releases AS e
                                ORDER BY
                                    e.created,
                                    e.name
                                LIMIT {{ most }}
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
            = translate(CAST({{ wanted }} AS VARCHAR), 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')
    ) AS k
)
