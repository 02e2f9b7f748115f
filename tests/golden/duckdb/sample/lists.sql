(
    SELECT
        list(CAST(threshold AS UINTEGER) ORDER BY position) AS thresholds0,
        list(CAST(value AS UTINYINT) ORDER BY position) AS own0,
        list(CAST(alias AS UTINYINT) ORDER BY position) AS aliases0
    FROM slots WHERE node = 1
)
