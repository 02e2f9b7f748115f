-- A release by SQL: one row that says what was made. The condition is true: it makes the call also in queries that
-- use no column, such as SELECT count(*).
-- in:  macro (its name), parameters (name; value: the default), columns (of the row), answer (attach/answer)
-- out: table macro, of this connection alone
CREATE OR REPLACE TEMP MACRO {{ macro }}(
{% for parameter in parameters %}
    {{ parameter.name }} := {{ parameter.value }}{% if not loop.last %},{% endif %}

{% endfor %}
) AS TABLE
SELECT
{% for column in columns %}
    made.answer.{{ column }} AS {{ column }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM {{ answer }} AS made
WHERE made.answer IS NOT NULL
