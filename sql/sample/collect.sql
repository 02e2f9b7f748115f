-- The codes of a chunk, unpacked.
-- in:  staged (table with the columns row, a0, a1, ...), source (query), codes (<expression> AS a<i>)
-- out: one row a row of the chunk
INSERT INTO {{ staged }}
SELECT
    CAST("row" AS BIGINT) AS "row",
{% for code in codes %}
    {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
FROM (
    {{ source }}
)
