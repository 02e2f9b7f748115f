-- What a release by SQL would do, a line a row; it reads no row and charges nothing.
-- in:  macro (its name), parameters (name; value: the default), answer (attach/answer)
-- out: table macro, of this connection alone
CREATE OR REPLACE TEMP MACRO {{ macro }}(
{% for parameter in parameters %}
    {{ parameter.name }} := {{ parameter.value }}{% if not loop.last %},{% endif %}

{% endfor %}
) AS TABLE
SELECT unnest(made.answer.lines) AS plan
FROM {{ answer }} AS made
