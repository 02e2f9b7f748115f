(
    SELECT
        CAST(nullif(trim("a"), '') AS INTEGER) AS "a",
        "b""" AS "b""",
        CAST(nullif(trim("d"), '') AS DATE) AS "d",
        "left" AS "left"
    FROM texts
)
