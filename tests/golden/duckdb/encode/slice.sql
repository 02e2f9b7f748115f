(
    SELECT
        "id",
        "d""",
        "place0"
    FROM src
    WHERE "d""" >= DATE '2013-02-01' AND "d""" < DATE '2013-03-01'
)
