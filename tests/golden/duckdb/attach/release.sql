CREATE OR REPLACE TEMP MACRO "r"(
    "source" := NULL,
    "into" := 'it''s'
) AS TABLE
SELECT
    made.answer."rows" AS "rows",
    made.answer."notes" AS "notes"
FROM (SELECT 1 AS answer) AS made
WHERE made.answer IS NOT NULL
