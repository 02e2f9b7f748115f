(
    SELECT
        "id",
        "d""",
        "place0"
    FROM (
        SELECT
            "id",
            "d""",
            "place0",
            encode(CAST("id" AS VARCHAR)) AS "its_unit0",
            CAST(CASE WHEN "d""" < DATE '2013-02-01' THEN 0 ELSE 1 END AS INTEGER) AS "its_number0"
        FROM src
        WHERE "d""" >= DATE '2013-02-01' AND "d""" < DATE '2013-03-01'
    ) AS inside
    INNER JOIN (
        SELECT
            "a_unit0",
            "a_number0",
            row_number() OVER (
                PARTITION BY
                    "a_unit0"
                ORDER BY
                    "a_number0"
            ) AS "place1"
        FROM (
            SELECT DISTINCT
                encode(CAST("id" AS VARCHAR)) AS "a_unit0",
                CAST(CASE WHEN "d""" < DATE '2013-02-01' THEN 0 ELSE 1 END AS INTEGER) AS "a_number0"
            FROM src
            WHERE "d""" >= DATE '2013-01-01' AND "d""" < DATE '2013-03-01'
        ) AS met
        WHERE "a_unit0" IS NOT NULL
    ) AS placed
        ON "its_unit0" = "a_unit0"
        AND "its_number0" = "a_number0"
    WHERE "place1" <= 1
)
