-- One row with the answer of a Python function to the options; its fault, if it has one, stops the query.
-- The options pass through a table function, which takes constants alone, no columns and no subqueries: no row of a
-- table can make a call. For the same reason planning a query does not run it.
-- in:  parameters (name; key: the same as a literal), function (its name), seen (what the connection sees)
-- out: answer (STRUCT), asked once
(
    SELECT CASE WHEN asked.answer.fault IS NULL THEN asked.answer ELSE error(asked.answer.fault) END AS answer
    FROM (
        SELECT
            {{ function }}(
                CAST(called.options AS VARCHAR),
                {{ seen }},
                current_query_id(),
                current_query()
            ) AS answer
        FROM repeat(
            json_object(
{% for parameter in parameters %}
                {{ parameter.key }}, {{ parameter.name }}{% if not loop.last %},{% endif %}

{% endfor %}
            ),
            1
        ) AS called(options)
    ) AS asked
)
