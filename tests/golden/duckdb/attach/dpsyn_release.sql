CREATE OR REPLACE TEMP MACRO dpsyn_release(
    "source" := NULL,
    "into" := 'it''s'
) AS TABLE
SELECT
    made.answer.release_id AS release_id,
    made.answer."output" AS "output",
    made.answer."rows" AS "rows",
    made.answer.epsilon AS epsilon,
    made.answer.delta AS delta,
    made.answer.account AS account,
    made.answer.spent AS spent,
    made.answer.replayed AS replayed,
    made.answer.notes AS notes
FROM (SELECT 1 AS answer) AS made
WHERE made.answer IS NOT NULL
