SELECT
    COALESCE(max(rank) + 1, 0) AS most
FROM staged
