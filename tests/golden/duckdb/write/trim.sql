DELETE FROM staged
WHERE "row" >= 0
AND "row" NOT IN (
    SELECT
        "row"
    FROM staged
    WHERE "row" >= 0
    ORDER BY "row"
    LIMIT 5
)
