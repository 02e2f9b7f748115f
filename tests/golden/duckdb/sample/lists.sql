(
    SELECT
        list(CAST(threshold AS UINTEGER) ORDER BY position) AS thresholds,
        list(CAST(value AS UTINYINT) ORDER BY position) AS own,
        list(CAST(alias AS UTINYINT) ORDER BY position) AS aliases
    FROM slots WHERE node = 1
)
