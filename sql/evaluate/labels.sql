-- Codes of the categories of the real table: the most frequent ones have a code each, all others one.
-- in:  labels (the table to make), table (a distribution), most, first (the first code), rare (of all others)
-- out: a temporary table: value, code UTINYINT
CREATE TEMP TABLE {{ labels }} AS
WITH ranked AS (
    SELECT
        value,
        row_number() OVER (ORDER BY real DESC, value) - 1 AS place
    FROM {{ table }}
    WHERE value IS NOT NULL
        AND real > 0
)
SELECT
    value,
    CAST(CASE WHEN place < {{ most }} THEN place + {{ first }} ELSE {{ rare }} END AS UTINYINT) AS code
FROM ranked
