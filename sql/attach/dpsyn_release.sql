-- A release by SQL: one row that says what was made. The condition is true: it makes the call also in queries that
-- use no column, such as SELECT count(*).
-- in:  parameters (name; value: the default), answer (attach/answer)
-- out: table macro, of this connection alone
CREATE OR REPLACE TEMP MACRO dpsyn_release(
{% for parameter in parameters %}
    {{ parameter.name }} := {{ parameter.value }}{% if not loop.last %},{% endif %}

{% endfor %}
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
FROM {{ answer }} AS made
WHERE made.answer IS NOT NULL
