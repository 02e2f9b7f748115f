-- Synthetic persons of a period with their numbers and codes.
-- in:  coded (query: parent (the id as bytes), p0, p1, ...; one row a person), codes (the names p<i>),
--      id (the id of the person number, as bytes), persons (how many persons there have been so far)
-- out: number, p0, p1, ...; by number
SELECT
    known.number,
{% for code in codes %}
    found.{{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM (
{{ coded }}
) AS found
JOIN (
    SELECT
        {{ id }} AS unit,
        number
    FROM range({{ persons }}) AS numbers(number)
) AS known
    ON found.parent = known.unit
ORDER BY known.number
