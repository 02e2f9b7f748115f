-- Give rows that cannot be the codes of others in some columns: of rows that agree with them in all else that is asked
-- for, one after the other in an order by chance. A row that no other agrees with keeps its codes.
-- in:  staged (table with the columns row, a0, a1, ...), first (rows from this number on take part), number (a name),
--      impossible (query of the numbers of these rows, in the column of this name), alike (expression: the
--      same number for rows that agree), codes (names of the columns that are taken over), step (added to row)
-- out: nothing
UPDATE {{ staged }} AS s
SET
{% for code in codes %}
    {{ code }} = taken.{{ code }},
{% endfor %}
    "row" = s."row" + {{ step }}
FROM (
    WITH impossible AS (
{{ impossible }}
    ),
    marked AS (
        SELECT
            *,
            {{ alike }} AS alike,
            "row" IN (SELECT {{ number }} FROM impossible) AS refused
        FROM {{ staged }}
        WHERE "row" >= {{ first }}
    ),
    placed AS (
        SELECT
            *,
            row_number() OVER (PARTITION BY alike, refused ORDER BY hash("row"), "row") AS place,
            count(*) FILTER (WHERE NOT refused) OVER (PARTITION BY alike) AS possible
        FROM marked
        WHERE alike IN (SELECT alike FROM marked WHERE refused)
    )
    SELECT
        refused."row",
{% for code in codes %}
        coalesce(good.{{ code }}, refused.{{ code }}) AS {{ code }}{% if not loop.last %},{% endif %}

{% endfor %}
    FROM placed AS refused
    LEFT JOIN placed AS good
        ON refused.alike = good.alike
            AND NOT good.refused
            AND good.place = (refused.place - 1) % greatest(refused.possible, 1) + 1
    WHERE refused.refused
) AS taken
WHERE s."row" = taken."row"
