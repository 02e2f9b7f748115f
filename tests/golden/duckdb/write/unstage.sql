DELETE FROM staged
WHERE "row" IN (
    SELECT
        "row"
    FROM listed
)
