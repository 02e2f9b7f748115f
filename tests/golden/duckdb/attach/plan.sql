CREATE OR REPLACE TEMP MACRO "p"(
    "source" := NULL,
    "into" := 'it''s'
) AS TABLE
SELECT unnest(made.answer.lines) AS plan
FROM (SELECT 1 AS answer) AS made
