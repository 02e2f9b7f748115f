UPDATE staged AS s
SET
    a0 = taken.a0,
    "row" = s."row" + 17179869184
FROM (
    WITH impossible AS (
WITH decoded AS (
    SELECT
        "row" AS "dpsyn_row",
        (CAST([0, 1] AS INTEGER[]))[CAST(a0 AS BIGINT) + 1] AS "a"
    FROM staged
    WHERE "row" >= 7 + 206158430208
),
computed AS (
    SELECT
        *,
        TRY_CAST(TRY("a" + 1) AS INTEGER) AS "b"
    FROM decoded
)
SELECT
    "dpsyn_row"
FROM computed
WHERE COALESCE(TRY("a" > 0), FALSE)
    OR COALESCE(TRY("b" IS NULL), FALSE)
    ),
    marked AS (
        SELECT
            *,
            hash(0) AS alike,
            "row" IN (SELECT "dpsyn_row" FROM impossible) AS refused
        FROM staged
        WHERE "row" >= 7
    ),
    placed AS (
        SELECT
            *,
            row_number() OVER (PARTITION BY alike, refused ORDER BY hash("row"), "row") AS place,
            count(*) FILTER (WHERE NOT refused) OVER (PARTITION BY alike) AS possible
        FROM marked
        WHERE alike IN (SELECT alike FROM marked WHERE refused)
    )
    SELECT
        refused."row",
        coalesce(good.a0, refused.a0) AS a0
    FROM placed AS refused
    LEFT JOIN placed AS good
        ON refused.alike = good.alike
            AND NOT good.refused
            AND good.place = (refused.place - 1) % greatest(refused.possible, 1) + 1
    WHERE refused.refused
) AS taken
WHERE s."row" = taken."row"
