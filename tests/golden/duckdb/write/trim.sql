DELETE FROM staged
WHERE "row" NOT IN (
    SELECT
        "row"
    FROM staged
    ORDER BY "row"
    LIMIT 5
)
