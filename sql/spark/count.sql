-- The counts of one tally over the rows at hand (private side, in a task).
-- in:  table (of counts), number (of the tally), keys (expressions in the order of the table's; NULL for those
--      that this tally does not have), query (of the tally)
-- out: nothing
INSERT INTO {{ table }}
SELECT
    {{ number }},
{% for key in keys %}
    {{ key }},
{% endfor %}
    n
FROM (
{{ query }}
) AS counted
